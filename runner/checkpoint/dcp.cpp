#include "checkpoint/dcp.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// {name: {"saved_offsets": [row, column, …]}}; empty where the file says nothing: its tensors are whole.
json sharding_of(const SafetensorsFile& file) {
  const auto found = file.metadata().find("DCP_SHARDING_INFO");
  if (found == file.metadata().end()) return json::object();
  json sharding = json::parse(found->second, nullptr, false);
  if (!sharding.is_object())
    throw InputError(fmt::format("{}: DCP_SHARDING_INFO is no JSON object", file.path().string()));
  return sharding;
}

Shape offsets_of(const json& sharding, const SafetensorsFile& file, const SafetensorsEntry& entry) {
  if (sharding.empty()) return Shape(entry.shape.size(), 0);
  try {
    const Shape offsets = sharding.at(entry.name).at("saved_offsets");
    for (size_t dim = 0; dim < offsets.size(); ++dim)
      if (int64_t end = 0;
          dim >= entry.shape.size() || offsets[dim] < 0 || __builtin_add_overflow(offsets[dim], entry.shape[dim], &end))
        throw InputError("");
    if (offsets.size() == entry.shape.size()) return offsets;
  } catch (const json::exception&) {
  } catch (const InputError&) {
  }
  throw InputError(fmt::format("{}: tensor '{}': DCP_SHARDING_INFO does not say where in the whole it begins",
                               file.path().string(), entry.name));
}

}  // namespace

DcpWeights::DcpWeights(fs::path folder) : folder_(std::move(folder)) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder_))
    if (entry.path().extension() == ".safetensors") paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const fs::path& path : paths) {
    files_.emplace_back(path);
    add(files_.size() - 1);
  }
  for (auto& [name, tensor] : tensors_)
    check_parts(tensor, subject_of(name), [&](size_t file) { return files_[file].path().string(); });
}

void DcpWeights::add(size_t index) {
  const SafetensorsFile& file = files_[index];
  const json sharding = sharding_of(file);
  for (const SafetensorsEntry& entry : file.entries()) {
    const Shape offsets = offsets_of(sharding, file, entry);
    Parts& tensor = tensors_[entry.name];
    if (tensor.parts.empty()) tensor.shape.assign(entry.shape.size(), 0);
    if (tensor.shape.size() != entry.shape.size())
      throw InputError(fmt::format("{}: tensor '{}' has {} dimensions, and {} in another file", file.path().string(),
                                   entry.name, entry.shape.size(), tensor.shape.size()));
    for (size_t dim = 0; dim < offsets.size(); ++dim)
      tensor.shape[dim] = std::max(tensor.shape[dim], offsets[dim] + entry.shape[dim]);
    tensor.parts.push_back({index, offsets, entry.shape});
  }
}

std::vector<std::string> DcpWeights::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

std::string DcpWeights::stored_dtype(const std::string& name) const {
  return files_[tensor(name).parts.front().source].entry(name).stored_dtype;
}

fs::path DcpWeights::path_of(const std::string& name) const {
  return files_[tensor(name).parts.front().source].path();
}

Tensor DcpWeights::read_rows(const std::string& name, int64_t begin, int64_t count) const {
  const auto read = [&](const Part& part, int64_t first, int64_t rows) {
    return files_[part.source].read_rows_as_float32(name, first, rows);
  };
  return rows_of_parts(tensor(name), begin, count, subject_of(name), read);
}

std::string DcpWeights::subject_of(const std::string& name) const {
  return fmt::format("{}: tensor '{}'", folder_.string(), name);
}

const Parts& DcpWeights::tensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw InputError(fmt::format("{}: no tensor '{}'", folder_.string(), name));
  return found->second;
}

}  // namespace trainyard::checkpoint
