#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/reader.h"
#include "tensor/safetensors.h"

namespace trainyard::checkpoint {

/// The weights of a Hugging Face folder: model.safetensors, or the files that model.safetensors.index.json lists.
/// Each rank opens its own and reads only its rows. Tensors that nobody asks for (a stored copy of a tied lm_head, say)
/// are never read. Threads may read at once.
class HuggingFaceWeights {
 public:
  /// Throws InputError, naming the file, where the folder holds neither, or a file is damaged (tensor/safetensors.h),
  /// or the index names a file outside the folder or a tensor that its file does not hold.
  explicit HuggingFaceWeights(std::filesystem::path folder);

  [[nodiscard]] bool has(const std::string& name) const { return file_of_.contains(name); }
  [[nodiscard]] std::vector<std::string> names() const;
  /// Throws InputError where there is no such tensor.
  [[nodiscard]] const Shape& shape(const std::string& name) const { return file(name).entry(name).shape; }
  /// The file that holds it, for messages.
  [[nodiscard]] const std::filesystem::path& path_of(const std::string& name) const { return file(name).path(); }

  /// Rows [begin, begin + count) as float32, from F32, BF16, F16 or F64.
  [[nodiscard]] Tensor read_rows(const std::string& name, int64_t begin, int64_t count) const;

 private:
  void open_single(const std::filesystem::path& path);
  void open_indexed(const std::filesystem::path& index);
  [[nodiscard]] const SafetensorsFile& file(const std::string& name) const;

  std::filesystem::path folder_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t> file_of_;
};

struct ExportOptions {
  std::filesystem::path output;              ///< made; an existing one must be empty
  DType dtype = DType::Float32;              ///< or BFloat16, Float16
  uint64_t max_shard_bytes = 5'000'000'000;  ///< of one file, unless a single tensor is larger
};

struct Exported {
  size_t tensors = 0;
  size_t files = 0;    ///< of weights
  uint64_t bytes = 0;  ///< of weights
};

/// Writes the model as a Hugging Face folder: config.json and tokenizer files as the checkpoint records them, and the
/// weights in one file or several with an index. Held in memory: a piece of one tensor. The folder appears complete or
/// not at all. A tied head is not stored, as transformers does it.
/// Throws InputError: the output holds files, cannot be written, or the checkpoint lacks rows or its config.json.
Exported export_to_hugging_face(const Checkpoint& checkpoint, const ExportOptions& options);

}  // namespace trainyard::checkpoint
