#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/language_model.h"
#include "tensor/safetensors.h"

namespace trainyard::test {

/// One model of the reference data: its weights, and what PyTorch computes from them (data/parity/README.md).
struct ParityCase {
  std::string name;
  models::ModelConfig config;
  SafetensorsFile weights, golden;
  nlohmann::json expected;  ///< golden.json

  /// The first batch.
  [[nodiscard]] data::Batch batch() const;
};

/// The decoders of the reference data.
const std::vector<std::string>& decoder_cases();
ParityCase load_case(const std::string& name);

/// ‖a − b‖ / ‖b‖, in double.
double relative_l2(std::span<const float> a, std::span<const float> b);

}  // namespace trainyard::test
