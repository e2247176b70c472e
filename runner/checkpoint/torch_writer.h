#pragma once

#include <filesystem>
#include <span>

#include "checkpoint/rank_files.h"
#include "checkpoint/torch_archive.h"
#include "common/unique_fd.h"

// What torch.save writes: torch.load(weights_only=True) reads it, and so does torch_archive.h. A piece of one tensor is
// in memory at a time. All throw std::filesystem::filesystem_error with the system's reason; std::invalid_argument for
// a type that is no floating point.
namespace trainyard::checkpoint {

/// Writes the file of a dictionary of these tensors, durable.
void write_torch_file(const std::filesystem::path& path, std::span<const RowSource> tensors);

/// A file to which tensors are appended, each as torch.save writes it alone: a .distcp file.
class TorchAppender {
 public:
  explicit TorchAppender(const std::filesystem::path& path);
  /// Rows [begin, begin + count) of the tensor, as a tensor of their own. Gives their place in the file.
  ByteRange append(const RowSource& tensor, int64_t begin, int64_t count);
  /// What was appended survives a power cut once this has returned.
  void finish();

 private:
  std::filesystem::path path_;
  UniqueFd file_;
  uint64_t bytes_ = 0;
};

}  // namespace trainyard::checkpoint
