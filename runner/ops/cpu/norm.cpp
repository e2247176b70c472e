#include <cmath>
#include <vector>

#include "ops/clip_formula.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

constexpr int64_t kBlock = kElementGrain;

/// It computes in double: squares of floats are exact there, and the conversions hide behind the loads.
template <typename T>
TRAINYARD_MULTIVERSION double block_sum_of_squares(const T* x, int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) {
    const double value = to_float(x[i]);
    sum += value * value;
  }
  return sum;
}

/// An exponent of all ones is NaN or infinity.
template <typename T>
TRAINYARD_MULTIVERSION bool block_is_finite(const T* x, int64_t count) {
  int bad = 0;
#pragma omp simd reduction(| : bad)
  for (int64_t i = 0; i < count; ++i)
    bad |= (std::bit_cast<uint32_t>(to_float(x[i])) & 0x7f800000U) == 0x7f800000U ? 1 : 0;
  return bad == 0;
}

/// One value of `of_block(first element, count)` for each block of kBlock elements.
template <typename T, typename Value, typename OfBlock>
std::vector<Value> by_block(const Tensor& x, const OfBlock& of_block) {
  const int64_t count = x.count(), blocks = (count + kBlock - 1) / kBlock;
  std::vector<Value> values(static_cast<size_t>(blocks));
  parallel_for(blocks, 1, [&, data = x.data<T>()](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block)
      values[static_cast<size_t>(block)] = of_block(data + block * kBlock, std::min(kBlock, count - block * kBlock));
  });
  return values;
}

}  // namespace

SquareSums sums_of_squares(std::span<const Tensor> tensors) {
  SquareSums sums{Tensor::zeros({static_cast<int64_t>(tensors.size())}, DType::Float64),
                  Tensor::zeros({1}, DType::Float64)};
  double* of_each = sums.of_each.data<double>();
  for (const Tensor& x : tensors) {
    double& sum = *of_each++;
    with_element(x.dtype(), [&]<typename T>(T*) {
      for (const double part : by_block<T, double>(x, block_sum_of_squares<T>)) sum += part;
    });
    sums.total.data<double>()[0] += sum;
  }
  return sums;
}

Tensor clip_factor(const Tensor& squares, double limit, double loss_scale) {
  double sum = 0;
  for (int64_t rank = 0; rank < squares.size(0); ++rank) sum += squares.data<double>()[rank * squares.size(1)];
  const float factor = clip_factor_of(std::sqrt(sum) / loss_scale, limit, loss_scale);
  return Tensor::from<float>(std::span(&factor, 1), {1});
}

bool all_finite(const Tensor& x) {
  return with_element(x.dtype(), [&]<typename T>(T*) {
    const auto finite = by_block<T, char>(x, block_is_finite<T>);
    return std::all_of(finite.begin(), finite.end(), [](char is_finite) { return is_finite != 0; });
  });
}

}  // namespace trainyard::ops::cpu
