#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/language_model.h"
#include "tensor/safetensors.h"

namespace trainyard::test {

/// One model with its weights, and what PyTorch computes from them: data/parity/README.md says what lies where.
struct ParityCase {
  std::filesystem::path folder;
  models::ModelConfig config;
  SafetensorsFile weights, golden;
  nlohmann::json expected;  ///< golden.json

  /// The first batch.
  [[nodiscard]] data::Batch batch() const;
};

/// tests/numerics/reference.
std::filesystem::path reference_folder();
/// The decoders of the reference data, and those that reference/generate made.
const std::vector<std::string>& decoder_cases();
/// And the encoder-decoders.
const std::vector<std::string>& all_cases();
/// Empty where the reference data is not there: `if (case_folder(name).empty()) return skip("no reference data");`
std::filesystem::path case_folder(const std::string& name);
ParityCase load_case(const std::string& name);

/// ‖a − b‖ / ‖b‖, in double.
double relative_l2(std::span<const float> a, std::span<const float> b);

}  // namespace trainyard::test
