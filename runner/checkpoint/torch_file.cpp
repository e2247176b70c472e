#include "checkpoint/torch_file.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "checkpoint/torch_archive.h"
#include "tensor/safetensors.h"

namespace trainyard::checkpoint {

namespace fs = std::filesystem;

TorchWeights::TorchWeights(const std::vector<fs::path>& files) {
  for (const fs::path& file : files) open(file);
}

void TorchWeights::open(const fs::path& path) {
  const FileSource& source = files_.emplace_back(path);
  for (SafetensorsEntry& entry : tensors_in_archive(source, {0, source.size()}, path.string())) {
    const std::string name = entry.name;
    if (!tensors_.emplace(name, Stored{files_.size() - 1, std::move(entry)}).second)
      throw InputError(fmt::format("{}: tensor '{}' stands in another file too", path.string(), name));
  }
}

std::vector<std::string> TorchWeights::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

fs::path TorchWeights::path_of(const std::string& name) const {
  return files_[tensor(name).file].path();
}

Tensor TorchWeights::read_rows(const std::string& name, int64_t begin, int64_t count) const {
  const Stored& stored = tensor(name);
  return read_rows_as_float32(files_[stored.file], 0, stored.entry, begin, count);
}

const TorchWeights::Stored& TorchWeights::tensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw InputError(fmt::format("{}: no tensor '{}'", files_.at(0).path().string(), name));
  return found->second;
}

}  // namespace trainyard::checkpoint
