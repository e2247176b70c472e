#include <algorithm>
#include <chrono>
#include <utility>

#include "ops/cost.h"
#include "ops/cpu/amx.h"
#include "ops/cpu/convert_rows.h"
#include "ops/cpu/gemm.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu_info.h"
#include "ops/elements.h"

namespace trainyard::ops::cpu {
namespace {

/// A transposed `a` is read down its columns. With a power-of-two distance from row to row these fall on a few sets of
/// the first-level cache; where c is too narrow for oneDNN to repack `a` first, the product runs at 40 to 70 % of its
/// rate (weight gradients of layers 512, 1024, … wide).
bool reads_collide(const ProductSize& size, const Factor<float>& a) {
  constexpr int64_t kCollision = 512, kNarrow = 512;
  return a.transpose == Transpose::Yes && a.stride % kCollision == 0 && size.n <= kNarrow &&
         (size.n <= kNarrow / 2 || a.stride <= kNarrow);
}

/// Holds a block of a factor in float32. The block's rows lie at a distance that is no power of two.
class FloatBlock {
 public:
  /// There is room for rows x columns of op(factor), where op transposes or not.
  FloatBlock(Transpose transpose, int64_t rows, int64_t columns) {
    if (transpose == Transpose::Yes) std::swap(rows, columns);
    values_ = Tensor::empty({rows, columns + 16}, DType::Float32);
  }

  /// The block [row, row + rows) x [column, column + columns) of op(factor), good until the next call.
  template <typename T>
  Factor<float> of(const Factor<T>& factor, int64_t row, int64_t rows, int64_t column, int64_t columns) {
    if (factor.transpose == Transpose::Yes) {
      std::swap(row, column);
      std::swap(rows, columns);
    }
    const int64_t from_stride = factor.stride, to_stride = values_.size(1);
    const T* const from = factor.data + row * from_stride + column;
    float* const to = values_.data<float>();
    parallel_for(rows, rows_grain(columns), [=](int64_t begin, int64_t end) {
      convert_rows(from + begin * from_stride, from_stride, to + begin * to_stride, to_stride, end - begin, columns);
    });
    return {to, to_stride, factor.transpose};
  }

 private:
  Tensor values_;
};

/// aᵀ · b with the rows of `a` copied to a distance that is no power of two, a few at a time.
void spread_product(const ProductSize& size, const Factor<float>& a, const Factor<float>& b, const Product& c) {
  constexpr int64_t kRows = 1024;
  FloatBlock spread(a.transpose, size.m, std::min(size.k, kRows));
  for (int64_t row = 0; row < size.k; row += kRows) {
    const int64_t rows = std::min(kRows, size.k - row);
    const int64_t b_at = b.transpose == Transpose::Yes ? row : row * b.stride;
    gemm({.m = size.m, .n = size.n, .k = rows, .beta = row == 0 ? size.beta : 1.0F},
         spread.of(a, 0, size.m, row, rows), {b.data + b_at, b.stride, b.transpose}, c);
  }
}

/// The processor does not multiply T, so this multiplies float32. No more than a block of each factor is converted at
/// once.
template <typename T>
void converted_product(const ProductSize& size, const Factor<T>& a, const Factor<T>& b, const Product& c) {
  constexpr int64_t kBlock = 512;
  const int64_t depth = std::min(size.k, kBlock);
  FloatBlock left(a.transpose, std::min(size.m, kBlock), depth), right(b.transpose, depth, std::min(size.n, kBlock));
  for (int64_t column = 0; column < size.n; column += kBlock) {
    const int64_t columns = std::min(kBlock, size.n - column);
    for (int64_t at = 0; at < size.k; at += kBlock) {
      const int64_t inner = std::min(kBlock, size.k - at);
      const Factor<float> b_block = right.of(b, at, inner, column, columns);
      for (int64_t row = 0; row < size.m; row += kBlock) {
        const int64_t rows = std::min(kBlock, size.m - row);
        gemm({.m = rows, .n = columns, .k = inner, .beta = at == 0 ? size.beta : 1.0F},
             left.of(a, row, rows, at, inner), b_block, {c.data + row * c.stride + column, c.stride});
      }
    }
  }
}

void product(const ProductSize& size, const Factor<float>& a, const Factor<float>& b, const Product& c) {
  if (reads_collide(size, a)) return spread_product(size, a, b, c);
  gemm(size, a, b, c);
}

void product(const ProductSize& size, const Factor<BFloat16>& a, const Factor<BFloat16>& b, const Product& c) {
  if (multiplies_bfloat16()) return gemm(size, a, b, c);
  converted_product(size, a, b, c);
}

void product(const ProductSize& size, const Factor<Float16>& a, const Factor<Float16>& b, const Product& c) {
  converted_product(size, a, b, c);
}

/// The size of the product of which c has some rows or all.
ProductSize product_size(const Tensor& a, const Tensor& c, const MatmulOptions& options) {
  return {.m = c.size(0),
          .n = c.size(1),
          .k = a.size(options.a == Transpose::Yes ? 0 : 1),
          .beta = options.accumulate ? 1.0F : 0.0F};
}

/// Computes the rows [first, first + c.size(0)) of the product into c, which is float32.
template <typename T>
void product_rows(const Tensor& a, const Tensor& b, int64_t first, Tensor& c, const MatmulOptions& options) {
  const bool is_turned = options.a == Transpose::Yes;
  const ProductSize size = product_size(a, c, options);
  if (size.k > 0)
    product(size, Factor<T>(a.data<T>() + first * (is_turned ? 1 : a.size(1)), a.size(1), options.a),
            Factor<T>(b.data<T>(), b.size(1), options.b), {c.data<float>(), c.size(1)});
  else if (!options.accumulate)
    set_zero(c);  // an empty sum
  if (options.bias.defined()) add_bias(c, in_float(options.bias));
}

/// Computes a c of 16 bits. Float32 sums exist for some rows at a time: few enough to stay in the cache, and enough for
/// oneDNN to be fast.
template <typename T>
void rounded_product(const Tensor& a, const Tensor& b, Tensor& c, const MatmulOptions& options) {
  constexpr int64_t kSums = int64_t{1} << 20, kLeastRows = 256;
  const int64_t most = std::min(c.size(0), std::max(kSums / c.size(1), kLeastRows));
  Tensor sums = Tensor::empty({most, c.size(1)}, DType::Float32);
  for (int64_t row = 0; row < c.size(0); row += most) {
    Tensor rows = c.rows(row, std::min(most, c.size(0) - row)), its_sums = sums.rows(0, rows.size(0));
    product_rows<T>(a, b, row, its_sums, {.a = options.a, .b = options.b, .bias = options.bias});
    if (options.accumulate)
      add_to(rows, its_sums);
    else
      cast(its_sums, rows);
  }
}

/// Whether a product is rounded where it is computed, with no float32 sums in memory.
bool rounds_in_place(const Tensor& a, const Tensor& c, const MatmulOptions& options) {
  const int64_t k = product_size(a, c, options).k;
  return a.dtype() == DType::BFloat16 && c.dtype() == DType::BFloat16 && multiplies_bfloat16_in_tiles() && k > 0 &&
         k <= kAmxRoundedDepth && !options.bias.defined();
}

void product_in_place(const Tensor& a, const Tensor& b, Tensor& c, const MatmulOptions& options) {
  amx_gemm(product_size(a, c, options), {a.data<BFloat16>(), a.size(1), options.a},
           {b.data<BFloat16>(), b.size(1), options.b}, c.data<BFloat16>(), c.size(1));
}

}  // namespace

void matmul(const Tensor& a, const Tensor& b, Tensor& c, MatmulOptions options) {
  if (c.count() == 0 || runs_elsewhere()) return;
  if (rounds_in_place(a, c, options)) return product_in_place(a, b, c, options);
  with_element(a.dtype(), [&]<typename T>(T*) {
    if (c.dtype() == DType::Float32)
      product_rows<T>(a, b, 0, c, options);
    else
      rounded_product<T>(a, b, c, options);
  });
}

}  // namespace trainyard::ops::cpu

namespace trainyard::ops {

double measure_matmul_peak(DType dtype) {
  constexpr int64_t kSize = 1024;
  using Clock = std::chrono::steady_clock;
  const Tensor a = Tensor::zeros({kSize, kSize}, dtype), b = Tensor::zeros({kSize, kSize}, dtype);
  Tensor c = Tensor::empty({kSize, kSize}, DType::Float32);
  matmul(a, b, c);  // generates the kernel and wakes the threads
  double best = 0;
  const auto enough = Clock::now() + std::chrono::milliseconds(60);  // every run waits for it at its start
  for (int run = 0; run < 3 || Clock::now() < enough; ++run) {
    const auto start = Clock::now();
    matmul(a, b, c);
    best = std::max(best, 2.0 * kSize * kSize * kSize / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

}  // namespace trainyard::ops
