#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/byte_io.h"
#include "checkpoint/distcp_metadata.h"
#include "checkpoint/weights.h"

namespace trainyard::checkpoint {

/// A checkpoint that torch.distributed.checkpoint.save() wrote to a folder (FileSystemWriter): `.metadata`, which
/// describes the whole, and files `.distcp` with what torch.save made of each part of each tensor. A part is opened
/// when its rows are asked for.
class DistcpWeights final : public Weights {
 public:
  /// Throws InputError, naming the file and the tensor: what read_distcp_metadata() throws, a file that is missing or
  /// too short, parts that overlap or leave a gap.
  explicit DistcpWeights(std::filesystem::path folder);

  [[nodiscard]] bool has(const std::string& name) const override { return metadata_.tensors.contains(name); }
  [[nodiscard]] std::vector<std::string> names() const override;
  [[nodiscard]] Shape shape(const std::string& name) const override { return tensor(name).parts.shape; }
  [[nodiscard]] std::string stored_dtype(const std::string& name) const override { return tensor(name).dtype; }
  [[nodiscard]] std::filesystem::path path_of(const std::string& name) const override;
  [[nodiscard]] Tensor read_rows(const std::string& name, int64_t begin, int64_t count) const override;

 private:
  [[nodiscard]] const DistcpMetadata::Tensor& tensor(const std::string& name) const;
  [[nodiscard]] std::string subject_of(const std::string& name) const;
  [[nodiscard]] Tensor read_part(const Part& part, int64_t begin, int64_t count, const std::string& subject) const;

  std::filesystem::path folder_;
  DistcpMetadata metadata_;
  std::map<std::string, FileSource> files_;  ///< by their names in the folder
};

}  // namespace trainyard::checkpoint
