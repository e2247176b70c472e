#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace trainyard::checkpoint {

/// Writes a pickle: opcodes of Python's pickletools.py, protocol 2, which every torch.load(weights_only=True) takes.
class PickleText {
 public:
  PickleText() { raw("\x80\x02"); }

  void raw(std::string_view opcodes) { text_ += opcodes; }
  /// What `module` calls so: a class or a function.
  void name(std::string_view module, std::string_view what);
  void text(std::string_view value);
  void number(int64_t value);
  void tuple(const Shape& numbers);
  /// torch.Size of these.
  void size(const Shape& sizes);
  /// An object of a class, without a call of its constructor. Its attributes follow, as a dictionary or a tuple, then
  /// "b".
  void object(std::string_view module, std::string_view type);
  /// A tensor whose elements, row after row, are the storage `key` of the archive.
  void tensor(std::string_view key, DType dtype, const Shape& shape);

  /// The whole, with its end.
  [[nodiscard]] std::string finished() const { return text_ + "."; }

 private:
  void little_endian(uint64_t value, int bytes);

  std::string text_;
};

}  // namespace trainyard::checkpoint
