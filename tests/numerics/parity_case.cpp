#include "parity_case.h"

#include <cmath>

#include "base/files.h"
#include "support/support.h"

namespace trainyard::test {

data::Batch ParityCase::batch() const {
  return {golden.read("input_ids"), golden.read("targets"),
          golden.has("position_ids") ? golden.read("position_ids") : Tensor()};
}

const std::vector<std::string>& decoder_cases() {
  static const std::vector<std::string> names{"qwen3-tiny",  "qwen3-untied", "llama3-tiny",
                                              "llama2-tiny", "qwen3-odd",    "llama-packed",
                                              "qwen2-tiny",  "qwen2-window", "mistral-tiny"};
  return names;
}

std::filesystem::path case_folder(const std::string& name) {
  for (const auto& folder : {std::filesystem::path(TRAINYARD_REFERENCE_DIR) / name, test_data() / "parity" / name})
    if (std::filesystem::exists(folder / "config.json")) return folder;
  return {};
}

ParityCase load_case(const std::string& name) {
  const auto folder = case_folder(name);
  return {folder, models::parse_config(read_file(folder / "config.json"), folder / "config.json"),
          SafetensorsFile(folder / "model.safetensors"), SafetensorsFile(folder / "golden.safetensors"),
          nlohmann::json::parse(read_file(folder / "golden.json"))};
}

double relative_l2(std::span<const float> a, std::span<const float> b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference) / std::sqrt(size);
}

}  // namespace trainyard::test
