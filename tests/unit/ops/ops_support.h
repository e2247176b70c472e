#pragma once

#include <functional>
#include <vector>

#include "support/devices.h"
#include "tensor/tensor.h"

namespace trainyard::test {

/// The element types of the ops.
std::vector<DType> floating_dtypes();

/// Values in [-1, 1) that depend on the seed and the index alone, rounded to `dtype`.
Tensor random_tensor(const Shape& shape, DType dtype, uint32_t seed, Device device = {});

Tensor int_tensor(const std::vector<int32_t>& values, Device device = {});

/// The elements in double, of any type of the ops, wherever they lie.
std::vector<double> in_double(const Tensor& tensor);

/// Largest |actual − expected| over the largest |expected| (1e-30 at least). Infinite if a NaN stands on one side only
/// or the counts differ.
double relative_error(const Tensor& actual, const std::vector<double>& expected);

/// The values as elements of `dtype` hold them.
std::vector<double> rounded(const std::vector<double>& values, DType dtype);

/// What an op may be off from the double-precision loop: rounding of float32 sums, or of a store in 8 or 11 bits.
constexpr double tolerance(DType dtype) {
  if (dtype == DType::Float32) return 1e-5;
  return dtype == DType::BFloat16 ? 1e-2 : 2e-3;
}

/// d(objective)/d(x[index]) by central differences of an objective in double.
double difference_quotient(const std::function<double(const std::vector<double>&)>& objective, std::vector<double> x,
                           size_t index);

/// Runs `body` with the calling thread's ops on one thread, then on three; puts the old number back.
void for_thread_counts(const std::function<void()>& body);

/// The place of one random number of ops/dropout.h.
struct DropoutPlace {
  uint64_t seed;
  int64_t sequence;
  uint64_t token;
  int64_t column;
};

/// The factor of the value at that place, 0 or 1 / (1 - rate), by the formula in ops/dropout.h.
double dropout_factor(float rate, const DropoutPlace& place);

bool same_bits(const Tensor& a, const Tensor& b);

}  // namespace trainyard::test
