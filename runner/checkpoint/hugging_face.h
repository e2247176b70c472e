#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/weights.h"
#include "tensor/safetensors.h"

namespace trainyard::checkpoint {

/// The weights of a Hugging Face folder: model.safetensors, or the files that model.safetensors.index.json lists; or
/// one safetensors file.
class HuggingFaceWeights final : public Weights {
 public:
  /// Throws InputError, naming the file, where the folder holds neither, or a file is damaged (tensor/safetensors.h),
  /// or the index names a file outside the folder or a tensor that its file does not hold.
  explicit HuggingFaceWeights(std::filesystem::path path);

  [[nodiscard]] bool has(const std::string& name) const override { return file_of_.contains(name); }
  [[nodiscard]] std::vector<std::string> names() const override;
  [[nodiscard]] Shape shape(const std::string& name) const override { return file(name).entry(name).shape; }
  [[nodiscard]] std::string stored_dtype(const std::string& name) const override {
    return file(name).entry(name).stored_dtype;
  }
  [[nodiscard]] std::filesystem::path path_of(const std::string& name) const override { return file(name).path(); }
  [[nodiscard]] Tensor read_rows(const std::string& name, int64_t begin, int64_t count) const override;

 private:
  void open_single(const std::filesystem::path& path);
  void open_indexed(const std::filesystem::path& index);
  [[nodiscard]] const SafetensorsFile& file(const std::string& name) const;
  /// A tensor that scales the weight `name`; "" where there is none.
  [[nodiscard]] std::string scale_of(const std::string& name) const;

  std::filesystem::path folder_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t> file_of_;
};

/// The files that an index ("weight_map": {tensor: file}) lists, each once, in its folder. Throws InputError as above.
std::vector<std::filesystem::path> indexed_files(const std::filesystem::path& index);

}  // namespace trainyard::checkpoint
