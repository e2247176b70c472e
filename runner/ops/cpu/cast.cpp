#include "ops/cpu/convert_rows.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

template <typename From, typename To>
TRAINYARD_MULTIVERSION void cast_elements(const From* from, To* to, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] = from_float<To>(to_float(from[i]));
}

}  // namespace

template <typename From, typename To>
void convert_rows(const From* from, int64_t from_stride, To* to, int64_t to_stride, int64_t rows, int64_t width) {
  for (int64_t row = 0; row < rows; ++row) cast_elements(from + row * from_stride, to + row * to_stride, width);
}
template void convert_rows(const float*, int64_t, float*, int64_t, int64_t, int64_t);
template void convert_rows(const BFloat16*, int64_t, float*, int64_t, int64_t, int64_t);
template void convert_rows(const Float16*, int64_t, float*, int64_t, int64_t, int64_t);
template void convert_rows(const float*, int64_t, BFloat16*, int64_t, int64_t, int64_t);

void cast(const Tensor& from, Tensor& to) {
  with_elements(from.dtype(), to.dtype(), [&]<typename From, typename To>(From*, To*) {
    parallel_for(from.count(), kElementGrain,
                 [from = from.data<From>(), to = to.data<To>()](int64_t begin, int64_t end) {
                   cast_elements(from + begin, to + begin, end - begin);
                 });
  });
}

Tensor in_float(const Tensor& tensor) {
  if (tensor.dtype() == DType::Float32) return tensor;
  Tensor converted = Tensor::empty(tensor.shape(), DType::Float32);
  cast(tensor, converted);
  return converted;
}

}  // namespace trainyard::ops::cpu
