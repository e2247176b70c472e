#include "ops/cuda/float8.h"

#include <cstring>

#include "ops/cuda/columns.cuh"
#include "ops/cuda/kernels.h"
#include "ops/elements.h"
#include "ops/float8_scale.h"

namespace trainyard::ops::cuda {
namespace {

/// most[block] = the largest |x| of the block's `of_block` elements.
template <int kCount, typename T>
__global__ void __launch_bounds__(kThreads) most_kernel(int64_t count, int64_t of_block, const T* x, float* most) {
  const int64_t begin = blockIdx.x * of_block, end = begin + of_block < count ? begin + of_block : count;
  float largest = 0;
  for (int64_t i = begin / kCount + threadIdx.x; i < end / kCount; i += blockDim.x) {
    const auto pack = load<kCount>(x, i);
    for (int k = 0; k < kCount; ++k) largest = fmaxf(largest, fabsf(to_float(pack.values[k])));
  }
  largest = among_block(largest, Most{});
  if (threadIdx.x == 0) most[blockIdx.x] = largest;
}

/// `blocks` of `of_block` elements each, the last maybe short.
template <typename T>
void most_of_blocks(const Tensor& x, int64_t blocks, int64_t of_block, Tensor& most) {
  with_packs(
      of_block % kWide<T> == 0 && x.count() % kWide<T> == 0,
      [&](auto width) {
        launch("absmax", x.device(), grid_of_rows(blocks, of_block / width.value), most_kernel<width.value, T>,
               x.count(), of_block, elements<T>(x), elements<float>(most));
      },
      elements<T>(x));
}

/// It works in two steps: over as many elements as keep a block busy, then over their results.
template <typename T>
void most_of_all(const Tensor& x, Tensor& most) {
  constexpr int64_t kLeast = 64 * kThreads, kMostBlocks = 1024, kPack = 16;
  const int64_t of_block = std::max(kLeast, (x.count() / kMostBlocks + kPack) / kPack * kPack);
  const int64_t blocks = (x.count() + of_block - 1) / of_block;
  Tensor parts = Tensor::empty({blocks}, DType::Float32, x.device());
  most_of_blocks<T>(x, blocks, of_block, parts);
  most_of_blocks<float>(parts, 1, blocks, most);
}

template <typename T>
struct MagnitudeOf {
  ColumnOf<T> x;
  __device__ float operator()(int64_t row, int64_t column) const { return fabsf(x(row, column)); }
};

template <typename T>
void most_of_columns(const Tensor& x, Tensor& most) {
  const int64_t rows = x.size(0), width = x.size(1);
  const ColumnBlocks blocks = column_blocks(rows, width);
  Tensor parts = parts_of(blocks, width).on(x.device());
  column_parts("absmax", rows, blocks, MagnitudeOf<T>{{elements<T>(x), width}}, Most{}, parts);
  const ColumnOf<float> of_parts{elements<float>(std::as_const(parts)), width};
  column_parts("absmax", blocks.count, {blocks.count, 1}, of_parts, Most{}, most);
}

/// One for all rows, or one for each.
struct Scales {
  const float* of_row = nullptr;
  bool is_one = true;

  explicit Scales(const Tensor& scale)
      : of_row(scale.defined() ? elements<float>(scale) : nullptr), is_one(scale.count() == 1) {}
  __device__ float at(int64_t row) const { return of_row[is_one ? 0 : row]; }
};

__global__ void __launch_bounds__(kThreads)
    scale_kernel(int64_t count, Scales most, float largest, bool power_of_2, float* scale, float* inverse) {
  const Stride stride = grid_stride();
  for (int64_t i = stride.first; i < count; i += stride.step) {
    scale[i] = float8_scale_of(most.at(i), largest, power_of_2);
    inverse[i] = 1.0F / scale[i];
  }
}

/// Where a cast goes; `values` null: nowhere.
template <typename T>
struct Target {
  T* values;
  int64_t stride;  ///< elements from row to row: the inner size with its padding
  Scales scales;

  explicit Target(Float8Target& target)
      : values(target.values.defined() ? elements<T>(target.values) : nullptr),
        stride(target.values.defined() ? target.values.size(1) : 0),
        scales(target.scale) {}
  /// What `value` becomes in a row; in 8 bits already: itself.
  template <typename From>
  __device__ T cast(From value, int64_t row) const {
    if constexpr (std::is_same_v<From, T>)
      return value;
    else
      return from_float_within_range<T>(to_float(value) * scales.at(row));
  }
};

constexpr int kTile = 64;

/// Whether all packs of a target's are aligned, as its rows are.
template <typename T>
bool are_wide(const T* values) {
  return reinterpret_cast<uintptr_t>(values) % 16 == 0;
}

/// A block takes a tile of x, which it reads once, and turns it in shared memory for the target by columns. A thread
/// takes kCount elements of a row at once, on either side; they are inside of x all or none.
template <int kCount, typename From, typename To>
__global__ void __launch_bounds__(kThreads)
    cast_kernel(int64_t rows, int64_t width, const From* x, Target<To> by_rows, Target<To> by_columns) {
  constexpr int kPacks = kTile / kCount, kStep = kThreads / kPacks, kWord = std::min(kCount, 4);
  alignas(kWord) __shared__ uint8_t turned[kTile][kTile + 4];  // 4 more: its columns fall on different banks
  const int at = static_cast<int>(threadIdx.x) % kPacks * kCount, first = static_cast<int>(threadIdx.x) / kPacks;
  const int64_t tile_row = int64_t{blockIdx.y} * kTile, tile_column = int64_t{blockIdx.x} * kTile;
  const int64_t column = tile_column + at;
  for (int i = first; i < kTile; i += kStep) {
    const int64_t row = tile_row + i;
    const bool is_inside = row < rows && column < width;
    const auto given = is_inside ? load<kCount>(x, (row * width + column) / kCount) : Pack<From, kCount>();
    if (row < rows && column < by_rows.stride) {
      Pack<To, kCount> made;
      for (int k = 0; k < kCount; ++k) made.values[k] = is_inside ? by_rows.cast(given.values[k], row) : To();
      store<kCount>(by_rows.values, (row * by_rows.stride + column) / kCount, made);
    }
    if (!by_columns.values) continue;
    for (int k = 0; k < kCount; ++k)
      turned[at + k][i] = is_inside ? by_columns.cast(given.values[k], column + k).bits : uint8_t{0};
  }
  if (!by_columns.values) return;
  __syncthreads();
  for (int i = first; i < kTile; i += kStep) {
    const int64_t row = tile_column + i, inner = tile_row + at;
    if (row >= width || inner >= by_columns.stride) continue;
    Pack<To, kCount> made;
    std::memcpy(made.values, __builtin_assume_aligned(&turned[i][at], kWord), sizeof made);
    store<kCount>(by_columns.values, (row * by_columns.stride + inner) / kCount, made);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    scaled_sums_kernel(int64_t count, int64_t columns, const float* sums, Scales of_rows, Scales of_columns, T* c,
                       bool accumulate) {
  const Stride stride = grid_stride();
  for (int64_t i = stride.first; i < count; i += stride.step) {
    const float sum = sums[i] * of_rows.at(i / columns) * of_columns.at(i % columns);
    c[i] = from_float<T>(accumulate ? to_float(c[i]) + sum : sum);
  }
}

}  // namespace

void absmax(const Tensor& x, Along along, Tensor& most) {
  if (most.count() == 0) return;
  if (x.count() == 0) return set_zero(most);
  with_element(x.dtype(), [&]<typename T>(T*) {
    if (along == Along::All) return most_of_all<T>(x, most);
    if (along == Along::Rows) return most_of_blocks<T>(x, x.size(0), x.size(1), most);
    most_of_columns<T>(x, most);
  });
}

void float8_scale(const Tensor& most, const Float8Cast& cast, Float8Scale& made) {
  const int64_t count = made.scale.count();
  if (count == 0) return;
  launch("float8_scale", most.device(), grid_for(count), scale_kernel, count, Scales(most), largest_of(cast.dtype),
         cast.power_of_2, elements<float>(made.scale), elements<float>(made.inverse));
}

void float8_cast(const Tensor& x, Float8Target& by_rows, Float8Target& by_columns) {
  if (x.count() == 0) return;
  const int64_t rows = x.size(0), width = x.size(1);
  const Grid tiles{.blocks = (padded_inner(width) + kTile - 1) / kTile,
                   .rows = (padded_inner(rows) + kTile - 1) / kTile};
  with_float8_cast(x, by_rows, by_columns, [&]<typename From, typename To>(From*, To*) {
    const Target<To> of_rows(by_rows), of_columns(by_columns);
    with_packs(
        width % kWide<From> == 0 && are_wide(of_rows.values) && are_wide(of_columns.values),
        [&](auto count) {
          launch("float8_cast", x.device(), tiles, cast_kernel<count.value, From, To>, rows, width, elements<From>(x),
                 of_rows, of_columns);
        },
        elements<From>(x));
  });
}

void scaled_sums(const Tensor& sums, const Tensor& of_rows, const Tensor& of_columns, Tensor& c,
                 Accumulate accumulate) {
  with_element(c.dtype(), [&]<typename T>(T*) {
    launch("float8_matmul", c.device(), grid_for(c.count()), scaled_sums_kernel<T>, c.count(), c.size(1),
           elements<float>(sums), Scales(of_rows), Scales(of_columns), elements<T>(c), accumulate == Accumulate::Yes);
  });
}

}  // namespace trainyard::ops::cuda
