#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/byte_io.h"
#include "checkpoint/weights.h"
#include "tensor/safetensors_header.h"

namespace trainyard::checkpoint {

/// Files of torch.save (torch_archive.h). One file, or the several that a pytorch_model.bin.index.json lists.
class TorchWeights final : public Weights {
 public:
  /// Throws InputError, naming the file: no such archive, or its pickle holds something other than tensors.
  explicit TorchWeights(const std::vector<std::filesystem::path>& files);

  [[nodiscard]] bool has(const std::string& name) const override { return tensors_.contains(name); }
  [[nodiscard]] std::vector<std::string> names() const override;
  [[nodiscard]] Shape shape(const std::string& name) const override { return tensor(name).entry.shape; }
  [[nodiscard]] std::string stored_dtype(const std::string& name) const override {
    return tensor(name).entry.stored_dtype;
  }
  [[nodiscard]] std::filesystem::path path_of(const std::string& name) const override;
  [[nodiscard]] Tensor read_rows(const std::string& name, int64_t begin, int64_t count) const override;

 private:
  struct Stored {
    size_t file;
    SafetensorsEntry entry;  ///< its bytes counted from the file's begin
  };
  void open(const std::filesystem::path& path);
  [[nodiscard]] const Stored& tensor(const std::string& name) const;

  std::vector<FileSource> files_;
  std::map<std::string, Stored> tensors_;
};

}  // namespace trainyard::checkpoint
