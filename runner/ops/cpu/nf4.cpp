#include "ops/nf4.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "ops/cpu/kernels.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/simd.h"
#include "ops/elements.h"
#include "ops/nf4_formula.h"

namespace trainyard::ops::cpu {
namespace {

constexpr int kValues = 16;

/// Codes of the values of a block, and the largest |value|. Of two values that are as near the lower one is taken, as
/// by torch.min.
TRAINYARD_INLINE float encode_block(const float* values, uint8_t* codes) {
  float most = 0;
#pragma omp simd reduction(max : most)
  for (int64_t i = 0; i < kNf4Block; ++i) {
    const float magnitude = __builtin_fabsf(values[i]);
    most = magnitude > most ? magnitude : most;
  }
  const float divisor = most > 0 ? most : 1;  // a block of zeros has the code of zero, where torchao divides by zero
  int32_t nearest[kNf4Block];
#pragma omp simd
  for (int64_t i = 0; i < kNf4Block; ++i) {
    const float scaled = values[i] / divisor;
    int32_t code = 0;
    for (int above = 1; above < kValues; ++above)
      code += __builtin_fabsf(scaled - nf4_value(above)) < __builtin_fabsf(scaled - nf4_value(above - 1)) ? 1 : 0;
    nearest[i] = code;
  }
  for (int64_t i = 0; i < kNf4Block / 2; ++i)
    codes[i] = static_cast<uint8_t>(nearest[2 * i] * kValues + nearest[2 * i + 1]);
  return most;
}

TRAINYARD_MULTIVERSION void encode_blocks(const float* values, int64_t blocks, uint8_t* codes, float* most) {
  for (int64_t block = 0; block < blocks; ++block)
    most[block] = encode_block(values + block * kNf4Block, codes + block * kNf4Block / 2);
}

/// The sum as ATen's SumKernel adds a contiguous row by vectors of eight: four vectors beside each other, their sums
/// handed on from level to level.
float sum_in_torch_order(std::span<const float> x) {
  constexpr size_t kLanes = 8, kBeside = 4 * kLanes, kLevels = 4;
  const size_t steps = x.size() / kBeside, vectors = x.size() / kLanes;
  const size_t power = std::max<size_t>(4, steps <= 2 ? 0 : static_cast<size_t>(std::bit_width(steps - 1)) / kLevels);
  const size_t step = size_t{1} << power;
  std::array<std::array<float, kBeside>, kLevels> levels{};
  const auto add = [](auto& to, const auto& from, size_t count) {
    for (size_t i = 0; i < count; ++i) to[i] += from[i];
  };
  size_t done = 0;
  while (done + step <= steps) {
    for (const size_t end = done + step; done < end; ++done) add(levels[0], x.subspan(done * kBeside), kBeside);
    for (size_t level = 1; level < kLevels; ++level) {
      add(levels[level], levels[level - 1], kBeside);
      levels[level - 1] = {};
      if ((done & ((step - 1) << (level * power))) != 0) break;
    }
  }
  for (; done < steps; ++done) add(levels[0], x.subspan(done * kBeside), kBeside);
  for (size_t level = 1; level < kLevels; ++level) add(levels[0], levels[level], kBeside);
  std::array<float, kBeside>& sums = levels[0];
  for (size_t vector = steps * 4; vector < vectors; ++vector) add(sums, x.subspan(vector * kLanes), kLanes);
  for (size_t beside = 1; beside < 4; ++beside) add(sums, std::span(sums).subspan(beside * kLanes), kLanes);
  float sum = 0;
  for (size_t i = vectors * kLanes; i < x.size(); ++i) sum += x[i];
  for (size_t lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  return sum;
}

/// A scale as an int8, to nearest even. Where all of a factor's scales are the mean, the factor is infinite and this 0.
int8_t scaler_of(float scale, float factor, float mean) {
  const float scaled = std::nearbyint((scale - mean) * factor);
  return std::isnan(scaled) ? int8_t{0} : static_cast<int8_t>(std::clamp(scaled, -128.0F, 127.0F));
}

/// A row's share of a packed matrix.
struct PackedBlocks {
  const uint8_t* codes;
  const int8_t* scalers;
  const float* factor;  ///< of the whole matrix
  float mean;
  int64_t first;  ///< the number of its first block in the matrix
  int64_t count;
};

/// Calls look_up(table, codes, values) for each block: the 16 values that it has, and its 64 codes as they are packed.
template <typename T, typename LookUp>
TRAINYARD_INLINE void dequantize(const PackedBlocks& blocks, T* to, const LookUp& look_up) {
  float values[kValues];
  for (int code = 0; code < kValues; ++code) values[code] = nf4_value(code);
  for (int64_t block = 0; block < blocks.count; ++block) {
    const float factor = blocks.factor[(blocks.first + block) / kNf4FactorBlocks];
    const float scale = nf4_scale_of(blocks.scalers[block], factor, blocks.mean);
    T table[kValues];
#pragma omp simd
    for (int code = 0; code < kValues; ++code) table[code] = from_float<T>(values[code] * scale);
    look_up(table, blocks.codes + block * kNf4Block / 2, to + block * kNf4Block);
  }
}

template <typename T>
void dequantize_one_by_one(const PackedBlocks& blocks, T* to) {
  dequantize(blocks, to, [](const T* table, const uint8_t* codes, T* values) {
    for (int64_t i = 0; i < kNf4Block / 2; ++i) {
      values[2 * i] = table[codes[i] / kValues];
      values[2 * i + 1] = table[codes[i] % kValues];
    }
  });
}

/// 16 numbers of so many bytes, as a vector unit has them.
template <size_t bytes>
struct Sixteen;
template <>
struct Sixteen<1> {
  using Numbers = uint8_t __attribute__((vector_size(16)));
};
template <>
struct Sixteen<2> {
  using Numbers = uint16_t __attribute__((vector_size(32)));
};
template <>
struct Sixteen<4> {
  using Numbers = uint32_t __attribute__((vector_size(64)));
};

struct BySixteen {
  template <typename T>
  TRAINYARD_INLINE void operator()(const T* table, const uint8_t* codes, T* values) const {
    using Values = typename Sixteen<sizeof(T)>::Numbers;
    Values looked_in, found;
    std::memcpy(&looked_in, table, sizeof(looked_in));
    uint8_t in_turn[kNf4Block];
#pragma omp simd
    for (int64_t i = 0; i < kNf4Block / 2; ++i) {
      in_turn[2 * i] = codes[i] / kValues;
      in_turn[2 * i + 1] = codes[i] % kValues;
    }
    for (int64_t i = 0; i < kNf4Block; i += kValues) {
      Sixteen<1>::Numbers narrow;
      std::memcpy(&narrow, in_turn + i, sizeof(narrow));
      // From 8 to 32 bits at once g++ 12 goes number by number.
      const Values which = __builtin_convertvector(__builtin_convertvector(narrow, Sixteen<2>::Numbers), Values);
#if defined(__clang__)  // it has no lookup by a variable
      for (int value = 0; value < kValues; ++value) found[value] = looked_in[which[value]];
#else
      found = __builtin_shuffle(looked_in, which);
#endif
      std::memcpy(static_cast<void*>(values + i), &found, sizeof(found));
    }
  }
};

/// A vector unit with AVX-512 looks 16 values up with one instruction, several times as fast as one by one.
template <typename T>
[[gnu::target("avx512f,avx512bw,avx512vl")]] void dequantize_by_sixteen(const PackedBlocks& blocks, T* to) {
  dequantize(blocks, to, BySixteen{});
}

bool has_wide_lookups() {
#if defined(TRAINYARD_NO_MULTIVERSION)  // whose tests are those of one by one
  return false;
#else
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#endif
}

}  // namespace

void nf4_encode(const Tensor& values, Tensor& packed, Tensor& most) {
  const int64_t columns = values.size(1), blocks = columns / kNf4Block;
  parallel_for(values.size(0), rows_grain(columns),
               [=, from = values.data<float>(), to = packed.data<uint8_t>(), most = most.data<float>()](int64_t begin,
                                                                                                        int64_t end) {
                 for (int64_t row = begin; row < end; ++row)
                   encode_blocks(from + row * columns, blocks, to + row * nf4_row_bytes(columns), most + row * blocks);
               });
}

void nf4_scales(const Tensor& most, Nf4Scales& made) {
  if (dry_run()) return;
  const auto scales = most.values<float>();
  const float mean = scales.empty() ? 0 : sum_in_torch_order(scales) / static_cast<float>(scales.size());
  made.mean.data<float>()[0] = mean;
  float* factor = made.factor.data<float>();
  for (size_t begin = 0; begin < scales.size(); begin += kNf4FactorBlocks) {
    float furthest = 0;
    for (const float scale : scales.subspan(begin, std::min<size_t>(kNf4FactorBlocks, scales.size() - begin)))
      furthest = std::max(furthest, std::abs(scale - mean));
    *factor++ = 256 / (2 * furthest);
  }
}

void nf4_scale(const Tensor& most, const Nf4Scales& scales, int64_t first_row, Tensor& packed) {
  const int64_t blocks = most.size(1), columns = blocks * kNf4Block;
  parallel_for(most.size(0), rows_grain(columns), [&](int64_t begin, int64_t end) {
    const float* const factor = scales.factor.data<float>();
    const float mean = scales.mean.data<float>()[0];
    for (int64_t row = begin; row < end; ++row) {
      const float* const scale = most.data<float>() + row * blocks;
      uint8_t* const scalers = packed.data<uint8_t>() + row * nf4_row_bytes(columns) + columns / 2;
      for (int64_t block = 0; block < blocks; ++block)
        scalers[block] = std::bit_cast<uint8_t>(
            scaler_of(scale[block], factor[((first_row + row) * blocks + block) / kNf4FactorBlocks], mean));
    }
  });
}

void nf4_dequantize(const Tensor& packed, const Nf4Scales& scales, Tensor& values) {
  const int64_t columns = values.size(1), blocks = columns / kNf4Block;
  with_element(values.dtype(), [&]<typename T>(T*) {
    const auto dequantize_blocks = has_wide_lookups() ? dequantize_by_sixteen<T> : dequantize_one_by_one<T>;
    parallel_for(values.size(0), rows_grain(columns), [&, to = values.data<T>()](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const uint8_t* const of_row = packed.data<uint8_t>() + row * nf4_row_bytes(columns);
        dequantize_blocks({of_row, reinterpret_cast<const int8_t*>(of_row + columns / 2), scales.factor.data<float>(),
                           scales.mean.data<float>()[0], row * blocks, blocks},
                          to + row * columns);
      }
    });
  });
}

}  // namespace trainyard::ops::cpu
