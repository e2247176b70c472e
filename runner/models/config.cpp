#include "models/config.h"

namespace trainyard::models {

int64_t window_of(const ModelConfig& config, int64_t layer) {
  return layer >= config.first_windowed_layer ? config.sliding_window : 0;
}

}  // namespace trainyard::models
