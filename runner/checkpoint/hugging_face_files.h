#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

// What a Hugging Face folder consists of beside the tensors, for exports and for checkpoints in the full form.
namespace trainyard::checkpoint {

constexpr uint64_t kMaxWeightFileBytes = 5'000'000'000;  // as transformers divides

/// One file of weights.
struct WeightFile {
  std::string name;             ///< "model.safetensors", or "model-00001-of-00003.safetensors"
  std::vector<size_t> tensors;  ///< indices, ascending
  uint64_t bytes = 0;
};

/// Tensors stay in their order, and each file is as full as `max_bytes` allows; a larger tensor has a file of its own.
/// `stem`: "model".
std::vector<WeightFile> divide(std::span<const uint64_t> tensor_bytes, uint64_t max_bytes, std::string_view stem);

/// "<stem>.safetensors.index.json": which file holds which tensor.
std::string index_name(std::string_view stem);
std::string index_text(std::span<const WeightFile> files, std::span<const std::string> tensors);

/// config.json as a run recorded it in the state of its checkpoints, but for what it says of the stored weights: their
/// type is `dtype`, and no quantisation is left, as nothing is written quantised. What it says of the model is written
/// before (models/config.h). Throws InputError, beginning with `where`, where the state records none.
std::string config_text(const nlohmann::json& state, const std::string& where, DType dtype);

}  // namespace trainyard::checkpoint
