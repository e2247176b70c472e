#include "checkpoint/hugging_face_files.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/large_numbers.h"

namespace trainyard::checkpoint {

using nlohmann::json;

std::vector<WeightFile> divide(std::span<const uint64_t> tensor_bytes, uint64_t max_bytes, std::string_view stem) {
  std::vector<WeightFile> files(1);
  for (size_t i = 0; i < tensor_bytes.size(); ++i) {
    if (!files.back().tensors.empty() && files.back().bytes + tensor_bytes[i] > max_bytes) files.emplace_back();
    files.back().tensors.push_back(i);
    files.back().bytes += tensor_bytes[i];
  }
  for (size_t i = 0; i < files.size(); ++i)
    files[i].name = files.size() == 1 ? fmt::format("{}.safetensors", stem)
                                      : fmt::format("{}-{:05}-of-{:05}.safetensors", stem, i + 1, files.size());
  return files;
}

std::string index_name(std::string_view stem) {
  return fmt::format("{}.safetensors.index.json", stem);
}

std::string index_text(std::span<const WeightFile> files, std::span<const std::string> tensors) {
  uint64_t total = 0;
  json weight_map = json::object();
  for (const WeightFile& file : files) {
    total += file.bytes;
    for (const size_t tensor : file.tensors) weight_map[tensors[tensor]] = file.name;
  }
  return json{{"metadata", {{"total_size", total}}}, {"weight_map", std::move(weight_map)}}.dump(2) + "\n";
}

std::string config_text(const json& state, const std::string& where, DType dtype) {
  if (!state.contains("config_json") || !state["config_json"].is_string())
    throw InputError(
        fmt::format("{}: records no config.json of its model, so nobody could load the weights without it", where));
  const std::string held = with_large_numbers_held(state["config_json"].get<std::string>());
  auto config = nlohmann::ordered_json::parse(held, nullptr, false);
  if (!config.is_object()) throw InputError(fmt::format("{}: the config.json it records is no JSON object", where));
  if (config.contains("dtype")) config["dtype"] = name_of(dtype);  // transformers 5 renamed it
  if (config.contains("torch_dtype") || !config.contains("dtype")) config["torch_dtype"] = name_of(dtype);
  for (const char* const key : {"quantization_config", "compression_config"}) config.erase(key);
  return with_large_numbers_released(config.dump(2)) + "\n";
}

}  // namespace trainyard::checkpoint
