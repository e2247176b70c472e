#include "parity_case.h"

#include <cmath>

#include "base/files.h"
#include "support/support.h"

namespace trainyard::test {
namespace {

/// Real tokens of each row of a mask that is 1 for them and 0 for the padding that follows.
Tensor lengths_of(const Tensor& mask) {
  Tensor lengths = Tensor::zeros({mask.size(0)}, DType::Int32);
  for (int64_t i = 0; i < mask.count(); ++i)
    lengths.values<int32_t>()[static_cast<size_t>(i / mask.size(1))] += mask.values<int32_t>()[static_cast<size_t>(i)];
  return lengths;
}

}  // namespace

data::Batch ParityCase::batch() const {
  data::Batch batch{golden.read("input_ids"), golden.read("targets"),
                    golden.has("position_ids") ? golden.read("position_ids") : Tensor()};
  if (golden.has("attention_mask")) batch.input_lengths = lengths_of(golden.read("attention_mask"));
  for (int64_t row = 0; row < batch.input_ids.size(0); ++row) batch.sequences.push_back(row);
  return batch;
}

const std::vector<std::string>& all_cases() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = decoder_cases();
    all.insert(all.end(), {"t5-tiny", "t5-v1.1-tiny"});
    return all;
  }();
  return names;
}

const std::vector<std::string>& decoder_cases() {
  static const std::vector<std::string> names{"qwen3-tiny",   "qwen3-untied",  "llama3-tiny",  "llama2-tiny",
                                              "qwen3-odd",    "llama-packed",  "qwen2-tiny",   "qwen2-window",
                                              "mistral-tiny", "llama-padding", "qwen3-padding"};
  return names;
}

std::filesystem::path reference_folder() {
  return in_repository("tests/numerics/reference");
}

std::filesystem::path case_folder(const std::string& name) {
  for (const auto& folder : {reference_folder() / name, test_data() / "parity" / name})
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
