#include "models/meta_params.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace trainyard::models {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw InputError(fmt::format("params.json of Meta's Llama cannot say {}", what));
}

/// Meta's FeedForward takes two thirds of four times the width, times ffn_dim_multiplier, rounded down, and then up to a
/// multiple of multiple_of. The half keeps the product above the whole number that is meant.
void add_intermediate_size(const ModelConfig& config, nlohmann::json& params) {
  const int64_t of_width = 2 * (4 * config.hidden_size) / 3;
  const int64_t multiple = config.intermediate_size % 256 == 0 ? 256 : 1;
  params["multiple_of"] = multiple;
  if ((of_width + multiple - 1) / multiple * multiple != config.intermediate_size)
    params["ffn_dim_multiplier"] = (static_cast<double>(config.intermediate_size) + 0.5) / static_cast<double>(of_width);
}

}  // namespace

std::string meta_params(const ModelConfig& config) {
  require(config.family == "llama", fmt::format("that this is a {} model", config.family));
  require(config.head_dim * config.heads == config.hidden_size,
          fmt::format("that head_dim is {} and not hidden_size / num_attention_heads", config.head_dim));
  require(config.sliding_window == 0, "that attention has a sliding window");
  const RopeScaling& rope = config.rope_scaling;
  const bool is_scaled = rope.factor != 1;
  // The factor follows from the width there (checkpoint/meta_llama.h).
  require(!is_scaled || (rope.factor == (config.hidden_size <= 3072 ? 32 : 8) && rope.low_freq_factor == 1 &&
                         rope.high_freq_factor == 4 && rope.original_length == 8192),
          fmt::format("rope_scaling with the factor {} at hidden_size {}", rope.factor, config.hidden_size));
  nlohmann::json params{{"dim", config.hidden_size},
                        {"n_layers", config.layers},
                        {"n_heads", config.heads},
                        {"n_kv_heads", config.kv_heads},
                        {"vocab_size", config.vocab_size},
                        {"norm_eps", config.rms_norm_eps},
                        {"rope_theta", config.rope_theta},
                        {"use_scaled_rope", is_scaled}};
  add_intermediate_size(config, params);
  return params.dump(2) + "\n";
}

}  // namespace trainyard::models
