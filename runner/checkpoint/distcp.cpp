#include "checkpoint/distcp.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "tensor/safetensors.h"

namespace trainyard::checkpoint {

namespace fs = std::filesystem;

DistcpWeights::DistcpWeights(fs::path folder)
    : folder_(std::move(folder)), metadata_(read_distcp_metadata(folder_ / ".metadata")) {
  for (auto& [name, tensor] : metadata_.tensors) {
    for (const Part& part : tensor.parts.parts) {
      const auto& [file, range] = metadata_.stored[part.source];
      const FileSource& source = files_.try_emplace(file, folder_ / file).first->second;
      if (range.begin > source.size() || range.bytes > source.size() - range.begin)
        throw InputError(fmt::format("{}: ends at byte {}, before the part of '{}' that begins at {}; copy it again",
                                     source.path().string(), source.size(), name, range.begin));
    }
    check_parts(tensor.parts, subject_of(name), [&](size_t part) { return metadata_.stored[part].file; });
  }
}

std::vector<std::string> DistcpWeights::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : metadata_.tensors) names.push_back(name);
  return names;
}

fs::path DistcpWeights::path_of(const std::string& name) const {
  const auto& parts = tensor(name).parts.parts;
  return parts.empty() ? folder_ / ".metadata" : folder_ / metadata_.stored[parts.front().source].file;
}

Tensor DistcpWeights::read_rows(const std::string& name, int64_t begin, int64_t count) const {
  const std::string subject = subject_of(name);
  return rows_of_parts(tensor(name).parts, begin, count, subject, [&](const Part& part, int64_t first, int64_t rows) {
    return read_part(part, first, rows, subject);
  });
}

Tensor DistcpWeights::read_part(const Part& part, int64_t begin, int64_t count, const std::string& subject) const {
  const auto& [name, range] = metadata_.stored[part.source];
  const FileSource& file = files_.at(name);
  const auto tensors = tensors_in_archive(file, range, fmt::format("{}: {} from {} on", subject, name, range.begin));
  if (tensors.size() != 1 || tensors.front().shape != part.sizes)
    throw InputError(fmt::format("{}: the part in {} is not the {} that .metadata says; copy the folder again", subject,
                                 name, to_string(part.sizes)));
  return read_rows_as_float32(file, 0, tensors.front(), begin, count);
}

std::string DistcpWeights::subject_of(const std::string& name) const {
  return fmt::format("{}: tensor '{}'", folder_.string(), name);
}

const DistcpMetadata::Tensor& DistcpWeights::tensor(const std::string& name) const {
  const auto found = metadata_.tensors.find(name);
  if (found == metadata_.tensors.end()) throw InputError(fmt::format("{}: no tensor '{}'", folder_.string(), name));
  return found->second;
}

}  // namespace trainyard::checkpoint
