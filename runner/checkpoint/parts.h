#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tensor/tensor.h"

// Tensors that somebody cut in any dimensions, as PyTorch's distributed checkpoints do.
namespace trainyard::checkpoint {

/// A part of a tensor. One number has no dimension, and is a part as it is.
struct Part {
  size_t source;  ///< where it lies: an index of its owner's
  Shape offsets, sizes;
};

struct Parts {
  Shape shape;  ///< of the whole
  std::vector<Part> parts;
};

/// Sorts the parts by their offsets. Throws InputError, with `subject` in front of it: parts that overlap, which
/// `name_of_source` names, or that leave a gap, as where the file of a rank is missing.
void check_parts(Parts& tensor, const std::string& subject,
                 const std::function<std::string(size_t source)>& name_of_source);

/// Rows [begin, begin + count) of dim 0, float32. `read` gives rows of a part, float32 [count, the rest of its sizes].
/// Throws InputError, with `subject` in front of it, where they are not there.
Tensor rows_of_parts(const Parts& tensor, int64_t begin, int64_t count, const std::string& subject,
                     const std::function<Tensor(const Part& part, int64_t begin, int64_t count)>& read);

}  // namespace trainyard::checkpoint
