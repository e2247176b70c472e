#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/parts.h"
#include "checkpoint/weights.h"
#include "tensor/safetensors.h"

namespace trainyard::checkpoint {

/// A checkpoint that PyTorch's torch.distributed.checkpoint wrote through HuggingFaceStorageWriter(save_distributed):
/// each rank's part of each tensor in files of its own, and in their metadata DCP_SHARDING_INFO where the part begins,
/// in every dimension (torch/distributed/checkpoint/hf_storage.py). Ours are of this form too.
class DcpWeights final : public Weights {
 public:
  /// Throws InputError, naming file and tensor: no such files, damaged ones, parts that overlap, or that leave a gap,
  /// as where the file of a rank is missing.
  explicit DcpWeights(std::filesystem::path folder);

  [[nodiscard]] bool has(const std::string& name) const override { return tensors_.contains(name); }
  [[nodiscard]] std::vector<std::string> names() const override;
  [[nodiscard]] Shape shape(const std::string& name) const override { return tensor(name).shape; }
  [[nodiscard]] std::string stored_dtype(const std::string& name) const override;
  [[nodiscard]] std::filesystem::path path_of(const std::string& name) const override;
  [[nodiscard]] Tensor read_rows(const std::string& name, int64_t begin, int64_t count) const override;
  [[nodiscard]] bool may_lack_rows() const override { return true; }

 private:
  void add(size_t file);
  [[nodiscard]] std::string subject_of(const std::string& name) const;
  [[nodiscard]] const Parts& tensor(const std::string& name) const;

  std::filesystem::path folder_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, Parts> tensors_;  ///< a part's source is an index of files_
};

}  // namespace trainyard::checkpoint
