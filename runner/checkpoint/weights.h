#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace trainyard::checkpoint {

/// Named tensors of a model in somebody's files, whatever wrote them. Each rank opens its own and reads only the rows
/// that it asks for; tensors that nobody asks for (train/stored_weights.h) are never read.
/// One thread.
class Weights {
 public:
  virtual ~Weights() = default;

  [[nodiscard]] virtual bool has(const std::string& name) const = 0;
  [[nodiscard]] virtual std::vector<std::string> names() const = 0;
  /// Here and below: throws InputError where there is no such tensor.
  [[nodiscard]] virtual Shape shape(const std::string& name) const = 0;
  /// The dtype as safetensors spells it: "F32", "BF16", "I64", …
  [[nodiscard]] virtual std::string stored_dtype(const std::string& name) const = 0;
  /// The file that holds it, or one of those, for messages.
  [[nodiscard]] virtual std::filesystem::path path_of(const std::string& name) const = 0;
  /// Rows [begin, begin + count) of dim 0 as float32, from any floating-point type. Throws InputError, naming file and
  /// tensor, where they are not there or of another type.
  [[nodiscard]] virtual Tensor read_rows(const std::string& name, int64_t begin, int64_t count) const = 0;

  /// What is wrong with the files whose index is `part` modulo `parts`; none: they are as they were written, or whoever
  /// wrote them left no checksums. Reads them whole.
  [[nodiscard]] virtual std::optional<std::string> find_damage(int /*part*/, int /*parts*/) const { return {}; }
  /// Whether the last rows of every tensor may be in a file that is missing, without a trace in those that are here.
  [[nodiscard]] virtual bool may_lack_rows() const { return false; }
};

/// Whether a tensor of this name, its module's left out, scales quantised weights.
[[nodiscard]] inline bool is_scale(std::string_view name) {
  return name.find("scale") != std::string_view::npos;
}

}  // namespace trainyard::checkpoint
