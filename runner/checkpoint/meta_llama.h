#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/torch_file.h"

// Llama as Meta publishes it: consolidated.00.pth, one more file for each further rank of its model parallelism, and
// params.json.
namespace trainyard::checkpoint {

/// Whether `folder` holds such files.
[[nodiscard]] bool is_meta_llama(const std::filesystem::path& folder);

/// The config.json that says what the params.json of `folder` says. A vocab_size of -1 (Llama 2) is read from the
/// weights. Throws InputError, naming file and field.
[[nodiscard]] std::string meta_config_json(const std::filesystem::path& folder);

/// The weights under Hugging Face's names, put together from the ranks' parts. The rows of q_proj and k_proj are in
/// Hugging Face's order, where a head's rotated pairs are rows i and i + head_dim / 2, and not rows 2i and 2i + 1.
class MetaLlamaWeights final : public Weights {
 public:
  /// Throws InputError, naming the file: a part is missing, or does not fit params.json or the others.
  explicit MetaLlamaWeights(const std::filesystem::path& folder);

  [[nodiscard]] bool has(const std::string& name) const override { return tensors_.contains(name); }
  [[nodiscard]] std::vector<std::string> names() const override;
  [[nodiscard]] Shape shape(const std::string& name) const override { return tensor(name).shape; }
  [[nodiscard]] std::string stored_dtype(const std::string& name) const override;
  [[nodiscard]] std::filesystem::path path_of(const std::string& name) const override;
  [[nodiscard]] Tensor read_rows(const std::string& name, int64_t begin, int64_t count) const override;

 private:
  /// How the parts make the whole: each holds all of it, some of its rows, or some of its columns.
  enum class Cut { None, Rows, Columns };
  struct Whole {
    std::string stored;  ///< its name in the files
    Cut cut;
    Shape shape;
    int64_t head_rows = 0;  ///< of a head whose rows are to be put in order; 0: they are
  };
  void add(const std::string& stored);
  [[nodiscard]] Cut cut_of(const std::string& stored) const;
  [[nodiscard]] Shape shape_of(const std::string& stored, Cut cut) const;
  [[nodiscard]] const Whole& tensor(const std::string& name) const;
  [[nodiscard]] Tensor stored_rows(const Whole& whole, int64_t begin, int64_t count) const;

  std::filesystem::path folder_;
  std::vector<TorchWeights> parts_;
  std::map<std::string, Whole> tensors_;  ///< by Hugging Face's name
  int64_t hidden_ = 0, head_dim_ = 0, kv_heads_ = 0;
};

}  // namespace trainyard::checkpoint
