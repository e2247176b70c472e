#include "checkpoint/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace trainyard::checkpoint {
namespace {

/// Copies `part` to where it lies in `whole`, of as many dimensions, line by line of the last one.
void place(const Tensor& part, const Shape& offsets, Tensor& whole) {
  const Shape &sizes = part.shape(), &into = whole.shape();
  const int64_t line = sizes.back(), lines = line == 0 ? 0 : part.count() / line;
  for (int64_t at = 0; at < lines; ++at) {
    int64_t target = offsets.back(), stride = into.back(), rest = at;
    for (size_t dim = sizes.size() - 1; dim-- > 0;) {
      target += (rest % sizes[dim] + offsets[dim]) * stride;
      stride *= into[dim];
      rest /= sizes[dim];
    }
    std::memcpy(whole.data<float>() + target, part.data<float>() + at * line,
                static_cast<size_t>(line) * sizeof(float));
  }
}

bool overlaps(const Part& a, const Part& b) {
  for (size_t dim = 0; dim < a.offsets.size(); ++dim)
    if (a.offsets[dim] + a.sizes[dim] <= b.offsets[dim] || b.offsets[dim] + b.sizes[dim] <= a.offsets[dim])
      return false;
  return true;
}

/// Whether `later`, and what is behind it in the order of offsets, may share rows with `part`. One number has none.
bool may_meet(const Part& part, const Part& later) {
  return part.offsets.empty() || later.offsets[0] < part.offsets[0] + part.sizes[0];
}

}  // namespace

// Parts that do not overlap and have as many elements as the whole cover it.
void check_parts(Parts& tensor, const std::string& subject, const std::function<std::string(size_t)>& name_of_source) {
  std::ranges::sort(tensor.parts, {}, &Part::offsets);
  double covered = 0, whole = 1;  // a double cannot overflow, and is exact up to 2^53 elements
  for (const int64_t size : tensor.shape) whole *= static_cast<double>(size);
  for (size_t i = 0; i < tensor.parts.size(); ++i) {
    const Part& part = tensor.parts[i];
    covered += static_cast<double>(count_of(part.sizes));
    for (size_t j = i + 1; j < tensor.parts.size() && may_meet(part, tensor.parts[j]); ++j)
      if (overlaps(part, tensor.parts[j]))
        throw InputError(fmt::format("{}: its part from {} on is in {} and in {}", subject,
                                     to_string(tensor.parts[j].offsets), name_of_source(part.source),
                                     name_of_source(tensor.parts[j].source)));
  }
  if (covered < whole)
    throw InputError(fmt::format("{} of shape {}: {} of its {} elements are in no file; is the file of a rank missing?",
                                 subject, to_string(tensor.shape), whole - covered, whole));
}

Tensor rows_of_parts(const Parts& tensor, int64_t begin, int64_t count, const std::string& subject,
                     const std::function<Tensor(const Part&, int64_t, int64_t)>& read) {
  if (tensor.shape.empty() || begin < 0 || count < 0 || count > tensor.shape[0] - begin)
    throw InputError(fmt::format("{}: {} rows from {} on of shape {}", subject, count, begin, to_string(tensor.shape)));
  Shape shape = tensor.shape;
  shape[0] = count;
  Tensor rows = Tensor::empty(shape, DType::Float32);
  for (const Part& part : tensor.parts) {
    const int64_t first = std::max(begin, part.offsets[0]);
    const int64_t end = std::min(begin + count, part.offsets[0] + part.sizes[0]);
    if (first >= end) continue;
    Shape offsets = part.offsets;
    offsets[0] = first - begin;
    place(read(part, first - part.offsets[0], end - first), offsets, rows);
  }
  return rows;
}

}  // namespace trainyard::checkpoint
