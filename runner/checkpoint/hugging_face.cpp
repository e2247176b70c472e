#include "checkpoint/hugging_face.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kMaxIndexBytes = size_t{100} << 20;

/// weight_map of an index: tensor's name to file's name.
std::map<std::string, std::string> weight_map_of(const fs::path& index) {
  const json text = json::parse(read_file(index, kMaxIndexBytes), nullptr, false);
  if (!text.is_object() || !text.contains("weight_map") || !text["weight_map"].is_object())
    throw InputError(fmt::format("{}: no JSON object with a weight_map", index.string()));
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : text["weight_map"].items()) {
    if (!file.is_string())
      throw InputError(fmt::format("{}: tensor '{}': its file is no text", index.string(), tensor));
    const std::string name = file;
    if (name.empty() || name.find('/') != std::string::npos)
      throw InputError(
          fmt::format("{}: tensor '{}': its file '{}' is not in this folder", index.string(), tensor, name));
    files[tensor] = name;
  }
  return files;
}

}  // namespace

std::vector<fs::path> indexed_files(const fs::path& index) {
  std::set<std::string> names;
  for (const auto& [tensor, file] : weight_map_of(index)) names.insert(file);
  std::vector<fs::path> files;
  for (const std::string& name : names) files.push_back(index.parent_path() / name);
  return files;
}

HuggingFaceWeights::HuggingFaceWeights(fs::path path) : folder_(std::move(path)) {
  const fs::path single = folder_ / "model.safetensors", index = folder_ / "model.safetensors.index.json";
  if (fs::is_regular_file(folder_))
    open_single(folder_);
  else if (fs::exists(single))
    open_single(single);
  else if (fs::exists(index))
    open_indexed(index);
  else
    throw InputError(
        fmt::format("{}: neither model.safetensors nor model.safetensors.index.json is there; weights in other "
                    "formats are converted with transformers' save_pretrained(..., safe_serialization=True)",
                    folder_.string()));
}

void HuggingFaceWeights::open_single(const fs::path& path) {
  files_.emplace_back(path);
  for (const SafetensorsEntry& entry : files_[0].entries()) file_of_[entry.name] = 0;
}

void HuggingFaceWeights::open_indexed(const fs::path& index) {
  std::map<std::string, size_t> opened;
  for (const auto& [tensor, name] : weight_map_of(index)) {
    const auto [known, is_new] = opened.emplace(name, files_.size());
    if (is_new) files_.emplace_back(folder_ / name);
    if (!files_[known->second].has(tensor))
      throw InputError(fmt::format("{}: tensor '{}' is not in {}", index.string(), tensor, name));
    file_of_[tensor] = known->second;
  }
}

std::vector<std::string> HuggingFaceWeights::names() const {
  std::vector<std::string> names;
  for (const auto& [name, file] : file_of_) names.push_back(name);
  return names;
}

Tensor HuggingFaceWeights::read_rows(const std::string& name, int64_t begin, int64_t count) const {
  const auto dtype = file(name).entry(name).dtype();
  if (const std::string scale = dtype && is_float8(*dtype) ? scale_of(name) : ""; !scale.empty())
    throw InputError(
        fmt::format("{}: {} is quantized, with scales of its own in {}, which are not read; convert the weights to "
                    "bfloat16 first",
                    folder_.string(), name, scale));
  return file(name).read_rows_as_float32(name, begin, count);
}

/// Whatever is called a scale in the same module: weight_scale_inv, weight_scale, scale_weight, scale, weight.scale …
std::string HuggingFaceWeights::scale_of(const std::string& name) const {
  const size_t dot = name.rfind('.');
  const std::string module = dot == std::string::npos ? name : name.substr(0, dot + 1);
  for (auto next = file_of_.lower_bound(module); next != file_of_.end() && next->first.starts_with(module); ++next)
    if (next->first != name && is_scale(next->first.substr(module.size()))) return next->first;
  return "";
}

const SafetensorsFile& HuggingFaceWeights::file(const std::string& name) const {
  const auto found = file_of_.find(name);
  if (found == file_of_.end()) throw InputError(fmt::format("{}: no tensor '{}'", folder_.string(), name));
  return files_[found->second];
}

}  // namespace trainyard::checkpoint
