#include <vector>

#include "ops/cost.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"
#include "ops/float8_scale.h"

namespace trainyard::ops::cpu {
namespace {

template <typename T>
TRAINYARD_MULTIVERSION float most_of(const T* x, int64_t count) {
  float most = 0;
#pragma omp simd reduction(max : most)
  for (int64_t i = 0; i < count; ++i) {
    const float magnitude = __builtin_fabsf(to_float(x[i]));
    most = magnitude > most ? magnitude : most;
  }
  return most;
}

/// most[i] = the larger of it and |x[i]|.
template <typename T>
TRAINYARD_MULTIVERSION void keep_most(const T* x, int64_t count, float* most) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float magnitude = __builtin_fabsf(to_float(x[i]));
    most[i] = magnitude > most[i] ? magnitude : most[i];
  }
}

template <typename T>
void most_of_rows(const Tensor& x, float* most) {
  const int64_t width = x.size(1);
  parallel_for(x.size(0), rows_grain(width), [x = x.data<T>(), width, most](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) most[row] = most_of(x + row * width, width);
  });
}

template <typename T>
void most_of_columns(const Tensor& x, float* most) {
  const int64_t rows = x.size(0), width = x.size(1);
  parallel_for(width, rows_grain(rows), [x = x.data<T>(), rows, width, most](int64_t begin, int64_t end) {
    std::fill(most + begin, most + end, 0.0F);
    for (int64_t row = 0; row < rows; ++row) keep_most(x + row * width + begin, end - begin, most + begin);
  });
}

/// It casts values that are scaled on the way; `From` in 8 bits is copied.
template <typename From, typename To>
TRAINYARD_INLINE To scaled(From value, float scale) {
  if constexpr (std::is_same_v<From, To>)
    return value;
  else
    return To(To::within_range(to_float(value) * scale));
}

template <typename From, typename To>
TRAINYARD_MULTIVERSION void cast_row(const From* from, int64_t count, float scale, To* to) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] = scaled<From, To>(from[i], scale);
}

/// The scale of each row of a target.
struct Scales {
  const float* of_row;
  int64_t count;

  explicit Scales(const Tensor& scale)
      : of_row(scale.defined() ? scale.data<float>() : nullptr), count(scale.defined() ? scale.count() : 0) {}
  [[nodiscard]] float at(int64_t row) const { return of_row ? of_row[count == 1 ? 0 : row] : 1.0F; }
};

template <typename From, typename To>
void cast_by_rows(const Tensor& x, Float8Target& target) {
  const int64_t width = x.size(1), stride = target.values.size(1);
  const Scales scales(target.scale);
  parallel_for(
      x.size(0), rows_grain(width),
      [from = x.data<From>(), to = target.values.data<To>(), scales, width, stride](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          cast_row(from + row * width, width, scales.at(row), to + row * stride);
          std::fill(to + row * stride + width, to + (row + 1) * stride, To());
        }
      });
}

/// Some columns at a time, so that what is read of a row of x is used while it is there.
template <typename From, typename To>
void cast_by_columns(const Tensor& x, Float8Target& target) {
  constexpr int64_t kColumns = 16;
  const int64_t rows = x.size(0), width = x.size(1), stride = target.values.size(1);
  const Scales scales(target.scale);
  parallel_for(
      width, kColumns,
      [from = x.data<From>(), to = target.values.data<To>(), scales, rows, width, stride](int64_t begin, int64_t end) {
        for (int64_t first = begin; first < end; first += kColumns) {
          const int64_t last = std::min(first + kColumns, end);
          for (int64_t row = 0; row < rows; ++row)
            for (int64_t column = first; column < last; ++column)
              to[column * stride + row] = scaled<From, To>(from[row * width + column], scales.at(column));
          for (int64_t column = first; column < last; ++column)
            std::fill(to + column * stride + rows, to + (column + 1) * stride, To());
        }
      });
}

template <typename T>
TRAINYARD_MULTIVERSION void convert_row(const T* from, int64_t count, float scale, float* to) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] = to_float(from[i]) * scale;
}

Tensor dequantized(const Float8Matrix& matrix) {
  const int64_t inner = matrix.values.size(1);
  Tensor converted = Tensor::empty(matrix.values.shape(), DType::Float32);
  with_float8(matrix.values.dtype(), [&]<typename T>(T*) {
    const Scales scales(matrix.inverse_scale);
    parallel_for(
        matrix.values.size(0), rows_grain(inner),
        [from = matrix.values.data<T>(), to = converted.data<float>(), scales, inner](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row)
            convert_row(from + row * inner, inner, scales.at(row), to + row * inner);
        });
  });
  return converted;
}

}  // namespace

void absmax(const Tensor& x, Along along, Tensor& most) {
  with_element(x.dtype(), [&]<typename T>(T*) {
    if (along == Along::Columns) return most_of_columns<T>(x, most.data<float>());
    if (along == Along::Rows) return most_of_rows<T>(x, most.data<float>());
    Tensor of_rows = Tensor::empty({x.size(0), 1}, DType::Float32);
    most_of_rows<T>(x, of_rows.data<float>());
    most_of_columns<float>(of_rows, most.data<float>());
  });
}

void float8_scale(const Tensor& most, const Float8Cast& cast, Float8Scale& made) {
  const Scales largest(most);
  parallel_for(made.scale.count(), kElementGrain,
               [=, scale = made.scale.data<float>(), inverse = made.inverse.data<float>()](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   scale[i] = float8_scale_of(largest.at(i), largest_of(cast.dtype), cast.power_of_2);
                   inverse[i] = 1.0F / scale[i];
                 }
               });
}

void float8_cast(const Tensor& x, Float8Target& by_rows, Float8Target& by_columns) {
  with_float8_cast(x, by_rows, by_columns, [&]<typename From, typename To>(From*, To*) {
    if (by_rows.values.defined()) cast_by_rows<From, To>(x, by_rows);
    if (by_columns.values.defined()) cast_by_columns<From, To>(x, by_columns);
  });
}

void float8_matmul(const Float8Matrix& a, const Float8Matrix& b, Tensor& c, Float8MatmulOptions options) {
  if (c.count() == 0 || runs_elsewhere()) return;
  matmul(dequantized(a), dequantized(b), c, {.b = Transpose::Yes, .accumulate = options.accumulate == Accumulate::Yes});
}

}  // namespace trainyard::ops::cpu
