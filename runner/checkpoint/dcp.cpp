#include "checkpoint/dcp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
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

/// Copies `part` to where it lies in `whole`, of as many dimensions, line by line of the last one.
void place(const Tensor& part, const Shape& offsets, Tensor& whole) {
  const Shape &sizes = part.shape(), &into = whole.shape();
  const int64_t line = sizes.back(), lines = line == 0 ? 0 : part.count() / line;
  for (int64_t at = 0; at < lines; ++at) {
    int64_t target = offsets.back(), stride = into.back(), rest = at;
    for (size_t dim = sizes.size() - 1; dim-- > 0;) {
      target += (rest % sizes[dim] + offsets[dim]) * stride;
      stride *= into[dim];
      rest /= sizes[dim];
    }
    std::memcpy(whole.data<float>() + target, part.data<float>() + at * line,
                static_cast<size_t>(line) * sizeof(float));
  }
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
  for (auto& [name, tensor] : tensors_) {
    std::ranges::sort(tensor.parts, {}, &Part::offsets);
    check(name, tensor);
  }
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

bool DcpWeights::overlaps(const Part& a, const Part& b) {
  for (size_t dim = 0; dim < a.offsets.size(); ++dim)
    if (a.offsets[dim] + a.sizes[dim] <= b.offsets[dim] || b.offsets[dim] + b.sizes[dim] <= a.offsets[dim])
      return false;
  return true;
}

/// Whether `later`, and what is behind it in the order of offsets, may share rows with `part`. One number has none.
bool DcpWeights::may_meet(const Part& part, const Part& later) {
  return part.offsets.empty() || later.offsets[0] < part.offsets[0] + part.sizes[0];
}

/// Parts that do not overlap and have as many elements as the whole cover it.
void DcpWeights::check(const std::string& name, const Parts& tensor) const {
  double covered = 0, whole = 1;  // a double cannot overflow, and is exact up to 2^53 elements
  for (const int64_t size : tensor.shape) whole *= static_cast<double>(size);
  for (size_t i = 0; i < tensor.parts.size(); ++i) {
    const Part& part = tensor.parts[i];
    covered += static_cast<double>(count_of(part.sizes));
    for (size_t j = i + 1; j < tensor.parts.size() && may_meet(part, tensor.parts[j]); ++j)
      if (overlaps(part, tensor.parts[j]))
        throw InputError(fmt::format("{}: tensor '{}': its part from {} on is in {} too",
                                     files_[tensor.parts[j].file].path().string(), name,
                                     to_string(tensor.parts[j].offsets), files_[part.file].path().string()));
  }
  if (covered < whole)
    throw InputError(
        fmt::format("{}: tensor '{}' of shape {}: {} of its {} elements are in no file; is the file of a rank missing?",
                    folder_.string(), name, to_string(tensor.shape), whole - covered, whole));
}

std::vector<std::string> DcpWeights::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

std::string DcpWeights::stored_dtype(const std::string& name) const {
  return files_[tensor(name).parts.front().file].entry(name).stored_dtype;
}

fs::path DcpWeights::path_of(const std::string& name) const {
  return files_[tensor(name).parts.front().file].path();
}

Tensor DcpWeights::read_rows(const std::string& name, int64_t begin, int64_t count) const {
  const Parts& stored = tensor(name);
  if (stored.shape.empty() || begin < 0 || count < 0 || count > stored.shape[0] - begin)
    throw InputError(fmt::format("{}: tensor '{}': {} rows from {} on of shape {}", folder_.string(), name, count,
                                 begin, to_string(stored.shape)));
  Shape shape = stored.shape;
  shape[0] = count;
  Tensor rows = Tensor::empty(shape, DType::Float32);
  for (const Part& part : stored.parts) {
    const int64_t first = std::max(begin, part.offsets[0]);
    const int64_t end = std::min(begin + count, part.offsets[0] + part.sizes[0]);
    if (first >= end) continue;
    const Tensor read = files_[part.file].read_rows_as_float32(name, first - part.offsets[0], end - first);
    Shape offsets = part.offsets;
    offsets[0] = first - begin;
    place(read, offsets, rows);
  }
  return rows;
}

const DcpWeights::Parts& DcpWeights::tensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw InputError(fmt::format("{}: no tensor '{}'", folder_.string(), name));
  return found->second;
}

}  // namespace trainyard::checkpoint
