#pragma once

#include "models/config.h"

namespace trainyard::test {

/// A decoder whose step takes no time.
inline models::ModelConfig tiny_model() {
  return {.family = "qwen3",
          .vocab_size = 19,
          .hidden_size = 8,
          .intermediate_size = 12,
          .layers = 2,
          .heads = 2,
          .kv_heads = 1,
          .head_dim = 4,
          .max_positions = 16,
          .tied_head = true};
}

}  // namespace trainyard::test
