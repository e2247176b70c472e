#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace trainyard::checkpoint {

/// A tensor as torch.save describes it: elements of a storage, which is another entry of the archive.
struct PickledTensor {
  std::string storage_type;  ///< "FloatStorage"
  std::string storage_key;   ///< its entry is data/<key>
  int64_t storage_elements = 0;
  int64_t offset = 0;  ///< elements
  Shape shape, strides;
};

/// A value in a pickle. Those it refers to belong to the Pickle.
struct PickleValue {
  enum class Kind { None, Mark, Number, Text, Sequence, Mapping, Global, Storage, Tensor, Other };
  Kind kind = Kind::None;
  int64_t number = 0;
  std::string text;                       ///< of Text; of Global "torch._utils _rebuild…"
  std::vector<const PickleValue*> items;  ///< of Sequence
  std::vector<std::pair<const PickleValue*, const PickleValue*>> entries;  ///< of Mapping
  PickledTensor tensor;  ///< of Tensor, and of Storage its first fields
};

/// Reads what torch.save pickles of dictionaries of tensors and nothing else. Nothing is imported or called: the few
/// constructors that tensors need (torch._utils._rebuild_tensor_v2, OrderedDict, …) are understood by name.
/// Time and memory are linear in the text.
class Pickle {
 public:
  /// Throws InputError, beginning with `where`: the text is cut or garbled, or asks for any other call, which is named.
  Pickle(std::string_view text, std::string where);

  [[nodiscard]] const PickleValue& root() const { return *root_; }

 private:
  class Machine;
  std::deque<PickleValue> values_;
  const PickleValue* root_ = nullptr;
};

/// The tensors below `root` by name: of nested dictionaries with dots between. Where the root only wraps one, as
/// {"model": {…}, "optimizer": {…}} does, those of "model", "state_dict", "model_state_dict" or "module".
/// Throws InputError where there are none, one name stands twice, or the nesting has no end.
std::vector<std::pair<std::string, const PickledTensor*>> tensors_below(const PickleValue& root,
                                                                        const std::string& where);

}  // namespace trainyard::checkpoint
