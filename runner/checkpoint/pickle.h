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
  enum class Kind { None, Mark, Number, Text, Sequence, Mapping, Global, Storage, Tensor, Object, Other };
  Kind kind = Kind::None;
  int64_t number = 0;
  std::string text;                       ///< of Text; of Global "torch._utils _rebuild…"; of Object its class
  std::vector<const PickleValue*> items;  ///< of Sequence; of Object what it is made of
  std::vector<std::pair<const PickleValue*, const PickleValue*>> entries;  ///< of Mapping
  const PickleValue* state = nullptr;  ///< of Object: its attributes, mostly a mapping; null where it was given none
  PickledTensor tensor;  ///< of Tensor, and of Storage its first fields
};

/// Reads what torch.save pickles of dictionaries of tensors, or the descriptions that PyTorch writes beside them.
/// Nothing is imported or called: the few constructors that tensors need (torch._utils._rebuild_tensor_v2, OrderedDict,
/// …) are understood by name. Time and memory are linear in the text.
class Pickle {
 public:
  /// What becomes of a call of anything else, and of an object of a class.
  enum class OtherCalls {
    Refused,   ///< by name: a file of tensors needs no code
    Recorded,  ///< as an Object: its class's name, arguments and attributes
  };
  /// Throws InputError, beginning with `where`: the text is cut or garbled, or asks for what is refused.
  Pickle(std::string_view text, std::string where, OtherCalls others = OtherCalls::Refused);

  [[nodiscard]] const PickleValue& root() const { return *root_; }

 private:
  class Machine;
  std::deque<PickleValue> values_;
  const PickleValue* root_ = nullptr;
};

/// The value of the text `key` in a mapping, or of the attribute of an object; null where there is none.
const PickleValue* member(const PickleValue& of, std::string_view key);

/// The tensors below `root` by name: of nested dictionaries with dots between. Where the root only wraps one, as
/// {"model": {…}, "optimizer": {…}} does, those of "model", "state_dict", "model_state_dict" or "module". A root that
/// is a tensor is one without a name. Throws InputError where there are none, one name stands twice, or the nesting has
/// no end.
std::vector<std::pair<std::string, const PickledTensor*>> tensors_below(const PickleValue& root,
                                                                        const std::string& where);

}  // namespace trainyard::checkpoint
