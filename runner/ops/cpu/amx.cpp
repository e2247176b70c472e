#include "ops/cpu/amx.h"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "ops/cpu/parallel.h"

#if !defined(__clang__)
// gcc 12's own intrinsics begin with values that nothing sets (its bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

/// A function that may hold AMX and AVX-512, whatever the rest is compiled for.
#define TRAINYARD_AMX __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")))
#define TRAINYARD_AMX_INLINE TRAINYARD_AMX __attribute__((always_inline)) inline

namespace trainyard::ops::cpu {
namespace {

constexpr int64_t kSide = 16;   // rows of a tile, and columns of float32
constexpr int64_t kDepth = 32;  // columns of bfloat16
constexpr int64_t kTile = kSide * kDepth, kSumTile = kSide * kSide;
constexpr int64_t kBlock = 2 * kSide;  // sums are computed 2 x 2 tiles at a time, so that each tile loaded serves twice
constexpr int64_t kStretch = 256;      // of 32 rows so long, what both factors give stays in the first-level cache
constexpr int64_t kFloatDepth = 512;   // more columns of op(b) are packed at once then, and rows of op(a) fewer times
constexpr int64_t kPackedBytes = int64_t{1} << 20;  // of op(b) at a time: half of a second-level cache

int64_t tiles_of(int64_t count, int64_t side) {
  return (count + side - 1) / side;
}

/// The operand of LDTILECFG: all eight tiles are 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {kSide, kSide, kSide, kSide, kSide, kSide, kSide, kSide};
};

/// Transposes 16 x 16 elements of 32 bits.
TRAINYARD_AMX_INLINE void transpose(__m512i* rows) {
  __m512i other[kSide];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    other[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
    other[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kSide; i += 4) {
    rows[i] = _mm512_unpacklo_epi64(other[i], other[i + 2]);
    rows[i + 1] = _mm512_unpackhi_epi64(other[i], other[i + 2]);
    rows[i + 2] = _mm512_unpacklo_epi64(other[i + 1], other[i + 3]);
    rows[i + 3] = _mm512_unpackhi_epi64(other[i + 1], other[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    other[i] = _mm512_shuffle_i32x4(rows[i], rows[4 + i], 0x88);
    other[4 + i] = _mm512_shuffle_i32x4(rows[i], rows[4 + i], 0xdd);
    other[8 + i] = _mm512_shuffle_i32x4(rows[8 + i], rows[12 + i], 0x88);
    other[12 + i] = _mm512_shuffle_i32x4(rows[8 + i], rows[12 + i], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm512_shuffle_i32x4(other[i], other[8 + i], 0x88);
    rows[8 + i] = _mm512_shuffle_i32x4(other[i], other[8 + i], 0xdd);
    rows[4 + i] = _mm512_shuffle_i32x4(other[4 + i], other[12 + i], 0x88);
    rows[12 + i] = _mm512_shuffle_i32x4(other[4 + i], other[12 + i], 0xdd);
  }
}

/// The first `count` bits are set, and no more than there are.
template <typename Mask>
TRAINYARD_AMX_INLINE Mask first_bits(int64_t count) {
  constexpr int64_t kBits = 8 * sizeof(Mask);
  return count >= kBits ? static_cast<Mask>(-1) : static_cast<Mask>((uint64_t{1} << count) - 1);
}

/// Part of a factor as it lies in memory: `rows` x `columns`, `stride` elements from row to row.
struct Part {
  const BFloat16* data;
  int64_t stride, rows, columns;
};

/// Up to 16 rows of up to 32 elements; zeros beyond.
TRAINYARD_AMX_INLINE void load_rows(const Part& part, __m512i* rows) {
  const auto mask = first_bits<__mmask32>(part.columns);
#pragma GCC unroll 16
  for (int64_t i = 0; i < kSide; ++i)
    rows[i] = i < part.rows ? _mm512_maskz_loadu_epi16(mask, part.data + i * part.stride) : _mm512_setzero_si512();
}

/// Up to 32 rows of up to 16 elements, of which each two rows become one of pairs; zeros beyond.
TRAINYARD_AMX_INLINE void load_pairs(const Part& part, __m512i* pairs) {
  const auto mask = first_bits<__mmask16>(part.columns);
#pragma GCC unroll 16
  for (int64_t i = 0; i < kSide; ++i) {
    const BFloat16* const at = part.data + 2 * i * part.stride;
    const __m256i even = 2 * i < part.rows ? _mm256_maskz_loadu_epi16(mask, at) : _mm256_setzero_si256();
    const __m256i odd =
        2 * i + 1 < part.rows ? _mm256_maskz_loadu_epi16(mask, at + part.stride) : _mm256_setzero_si256();
    pairs[i] = _mm512_or_si512(_mm512_cvtepu16_epi32(even), _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
  }
}

TRAINYARD_AMX_INLINE void store_tile(const __m512i* rows, BFloat16* to) {
#pragma GCC unroll 16
  for (int64_t i = 0; i < kSide; ++i) _mm512_store_si512(to + i * kDepth, rows[i]);
}

/// rows x depth of op(a) from (row, at) on, as the left factor of a tile product: [16][32].
TRAINYARD_AMX void pack_left(const Factor<BFloat16>& a, int64_t row, int64_t at, int64_t rows, int64_t depth,
                             BFloat16* to) {
  __m512i tile[kSide];
  if (a.transpose == Transpose::Yes) {
    load_pairs({a.data + at * a.stride + row, a.stride, depth, rows}, tile);
    transpose(tile);
  } else {
    load_rows({a.data + row * a.stride + at, a.stride, rows, depth}, tile);
  }
  store_tile(tile, to);
}

/// depth x columns of op(b) from (at, column) on, as the right factor: [16][16][2], pairs of rows side by side.
TRAINYARD_AMX void pack_right(const Factor<BFloat16>& b, int64_t at, int64_t column, int64_t depth, int64_t columns,
                              BFloat16* to) {
  __m512i tile[kSide];
  if (b.transpose == Transpose::Yes) {
    load_rows({b.data + column * b.stride + at, b.stride, columns, depth}, tile);
    transpose(tile);
  } else {
    load_pairs({b.data + at * b.stride + column, b.stride, depth, columns}, tile);
  }
  store_tile(tile, to);
}

/// The rows [at, at + depth) of some columns of op(b), a stretch of 256 rows after the other, and of each a block of 32
/// columns after the other: [stretches][blocks][steps of 32 rows][2 tiles].
struct Packed {
  BFloat16* data;
  int64_t at, depth, columns;

  [[nodiscard]] int64_t blocks() const { return tiles_of(columns, kBlock); }
  [[nodiscard]] int64_t depth_of(int64_t stretch) const { return std::min(kStretch, depth - stretch * kStretch); }
  [[nodiscard]] int64_t steps_of(int64_t stretch) const { return tiles_of(depth_of(stretch), kDepth); }
  [[nodiscard]] BFloat16* block(int64_t stretch, int64_t index) const {
    return data + (stretch * kStretch * blocks() + index * steps_of(stretch) * kDepth) * kBlock;
  }
};

void pack(const Factor<BFloat16>& b, int64_t first_column, const Packed& to) {
  parallel_for(tiles_of(to.columns, kSide), rows_grain(to.depth * kSide), [&](int64_t begin, int64_t end) {
    for (int64_t stretch = 0; stretch < tiles_of(to.depth, kStretch); ++stretch)
      for (int64_t tile = begin; tile < end; ++tile)
        for (int64_t step = 0; step < to.steps_of(stretch); ++step)
          pack_right(b, to.at + stretch * kStretch + step * kDepth, first_column + tile * kSide,
                     std::min(kDepth, to.depth_of(stretch) - step * kDepth), std::min(kSide, to.columns - tile * kSide),
                     to.block(stretch, tile / 2) + (2 * step + tile % 2) * kTile);
  });
}

/// Up to 32 rows of op(a), where they lie or packed, with what lies between its tiles, in elements.
struct Rows {
  const BFloat16* data;
  int64_t from_step, from_tile, stride;
};

/// Adds up 1 or 2 tiles of rows times 1 or 2 of columns, from zero or from the sums so far, [2][2][16][16]. The
/// intrinsics take the tiles by number; gcc's do not say that they read memory.
template <int kRows, int kColumns>
TRAINYARD_AMX void add_tiles(const Rows& a, const BFloat16* b, int64_t steps, float* sums, bool from_zero) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (from_zero) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, sums, 64);
    if constexpr (kColumns == 2) _tile_loadd(1, sums + kSumTile, 64);
    if constexpr (kRows == 2) _tile_loadd(2, sums + 2 * kSumTile, 64);
    if constexpr (kRows == 2 && kColumns == 2) _tile_loadd(3, sums + 3 * kSumTile, 64);
  }
  const int64_t a_bytes = a.stride * 2;
  const BFloat16* rows = a.data;
  for (int64_t step = 0; step < steps; ++step, rows += a.from_step, b += 2 * kTile) {
    _tile_loadd(4, rows, a_bytes);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kColumns == 2) {
      _tile_loadd(7, b + kTile, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kRows == 2) {
      _tile_loadd(5, rows + a.from_tile, a_bytes);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (kRows == 2 && kColumns == 2) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, 64);
  if constexpr (kColumns == 2) _tile_stored(1, sums + kSumTile, 64);
  if constexpr (kRows == 2) _tile_stored(2, sums + 2 * kSumTile, 64);
  if constexpr (kRows == 2 && kColumns == 2) _tile_stored(3, sums + 3 * kSumTile, 64);
}

TRAINYARD_AMX void add_block(int64_t rows, int64_t columns, const Rows& a, const BFloat16* b, int64_t steps,
                             float* sums, bool from_zero) {
  if (rows > kSide)
    return columns > kSide ? add_tiles<2, 2>(a, b, steps, sums, from_zero)
                           : add_tiles<2, 1>(a, b, steps, sums, from_zero);
  return columns > kSide ? add_tiles<1, 2>(a, b, steps, sums, from_zero)
                         : add_tiles<1, 1>(a, b, steps, sums, from_zero);
}

TRAINYARD_AMX_INLINE void put(__m512 value, float beta, __mmask16 mask, float* to) {
  if (beta != 0) value = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, to), _mm512_set1_ps(beta), value);
  _mm512_mask_storeu_ps(to, mask, value);
}

TRAINYARD_AMX_INLINE void put(__m512 value, float beta, __mmask16 mask, BFloat16* to) {
  if (beta != 0) {
    const __m512i before = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, to)), 16);
    value = _mm512_fmadd_ps(_mm512_castsi512_ps(before), _mm512_set1_ps(beta), value);
  }
  _mm256_mask_storeu_epi16(to, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value)));
}

/// c = alpha · sums + beta · c for a block.
template <typename Out>
TRAINYARD_AMX void finish(const float* sums, int64_t rows, int64_t columns, float alpha, float beta, Out* c,
                          int64_t stride) {
  const __m512 factor = _mm512_set1_ps(alpha);
  for (int64_t column = 0; column < columns; column += kSide, sums += kSumTile) {
    const auto mask = first_bits<__mmask16>(columns - column);
    for (int64_t row = 0; row < rows; ++row) {
      const float* const of_row = sums + row / kSide * 2 * kSumTile + row % kSide * kSide;
      put(_mm512_mul_ps(_mm512_loadu_ps(of_row), factor), beta, mask, c + row * stride + column);
    }
  }
}

/// Holds what one thread needs beside the factors. It is no tensor, as a plan counts none of what depends on the number
/// of threads.
struct Scratch {
  alignas(64) BFloat16 rows[kBlock * kStretch];  ///< a stretch of 32 rows of op(a), packed
  std::unique_ptr<float[]> sums;                 ///< of 32 rows times `blocks` packed blocks, one after the other

  explicit Scratch(int64_t blocks)
      : sums(std::make_unique_for_overwrite<float[]>(static_cast<size_t>(blocks * kBlock * kBlock))) {}
};

/// Up to 32 rows of op(a) times the packed blocks [begin, end).
template <typename Out>
struct Panel {
  const Factor<BFloat16>& a;
  int64_t row, rows;
  Packed b;
  int64_t begin, end;
  float alpha, beta;
  Out* c;  ///< of `row` and the first packed column
  int64_t stride;

  TRAINYARD_AMX void compute(Scratch& scratch) const {
    const int64_t stretches = tiles_of(b.depth, kStretch);
    for (int64_t stretch = 0; stretch < stretches; ++stretch) {
      const Rows of_a = rows_of_a(stretch, scratch);
      for (int64_t block = begin; block < end; ++block) {
        const int64_t columns = std::min(kBlock, b.columns - block * kBlock);
        float* const sums = scratch.sums.get() + (stretches == 1 ? 0 : block - begin) * kBlock * kBlock;
        add_block(rows, columns, of_a, b.block(stretch, block), b.steps_of(stretch), sums, stretch == 0);
        if (stretch == stretches - 1) finish(sums, rows, columns, alpha, beta, c + block * kBlock, stride);
      }
    }
  }

 private:
  /// Whole tiles that lie as a product needs them are read in place.
  [[nodiscard]] Rows rows_of_a(int64_t stretch, Scratch& scratch) const {
    const int64_t at = b.at + stretch * kStretch, depth = b.depth_of(stretch);
    if (a.transpose == Transpose::No && rows % kSide == 0 && depth % kDepth == 0)
      return {a.data + row * a.stride + at, kDepth, kSide * a.stride, a.stride};
    BFloat16* const to = scratch.rows;
    for (int64_t step = 0; step < b.steps_of(stretch); ++step)
      for (int64_t tile = 0; tile * kSide < rows; ++tile)
        pack_left(a, row + tile * kSide, at + step * kDepth, std::min(kSide, rows - tile * kSide),
                  std::min(kDepth, depth - step * kDepth), to + (2 * step + tile) * kTile);
    return {to, 2 * kTile, kTile, kDepth};
  }
};

/// A product with packed columns as units that threads share: 32 rows each, with a part of the columns where there are
/// few rows.
template <typename Out>
struct Units {
  Panel<Out> whole;  ///< of all columns; its rows are set for each unit
  int64_t m, panels, parts;

  Units(const Panel<Out>& panel, int64_t rows) : whole(panel), m(rows), panels(tiles_of(rows, kBlock)) {
    constexpr int64_t kUnitsPerThread = 4;
    const int64_t wanted = tiles_of(kUnitsPerThread * omp_get_max_threads(), panels);
    parts = omp_get_max_threads() == 1 ? 1 : std::clamp<int64_t>(wanted, 1, panel.b.blocks());
  }

  TRAINYARD_AMX void compute(int64_t begin, int64_t end) const {
    const TileConfig config;
    _tile_loadconfig(&config);
    Scratch scratch(whole.b.depth <= kStretch ? 1 : tiles_of(whole.b.blocks(), parts));
    for (int64_t unit = begin; unit < end; ++unit) panel(unit / parts, unit % parts).compute(scratch);
    _tile_release();
  }

 private:
  [[nodiscard]] Panel<Out> panel(int64_t index, int64_t part) const {
    Panel<Out> at = whole;
    at.row = index * kBlock;
    at.rows = std::min(kBlock, m - at.row);
    at.c += at.row * at.stride;
    at.begin = whole.b.blocks() * part / parts;
    at.end = whole.b.blocks() * (part + 1) / parts;
    return at;
  }
};

/// Sums go to `c` after `most_depth` products.
template <typename Out>
void multiply(const ProductSize& size, const Factor<BFloat16>& a, const Factor<BFloat16>& b, Out* c, int64_t stride,
              int64_t most_depth) {
  const int64_t rows = tiles_of(std::min(size.k, most_depth), kDepth) * kDepth;
  const int64_t most_blocks = std::max<int64_t>(kPackedBytes / (rows * kBlock * 2), 1);
  const int64_t most_columns = std::min(most_blocks, tiles_of(size.n, kBlock)) * kBlock;
  Tensor packed = Tensor::empty({rows * most_columns}, DType::BFloat16);
  if (dry_run()) return;
  for (int64_t column = 0; column < size.n; column += most_columns)
    for (int64_t at = 0; at < size.k; at += most_depth) {
      const Packed of_b{packed.data<BFloat16>(), at, std::min(most_depth, size.k - at),
                        std::min(most_columns, size.n - column)};
      pack(b, column, of_b);
      const Units<Out> units({.a = a,
                              .row = 0,
                              .rows = 0,
                              .b = of_b,
                              .begin = 0,
                              .end = of_b.blocks(),
                              .alpha = size.alpha,
                              .beta = at == 0 ? size.beta : 1.0F,
                              .c = c + column,
                              .stride = stride},
                             size.m);
      parallel_for(units.panels * units.parts, 1, [&](int64_t begin, int64_t end) { units.compute(begin, end); });
    }
}

}  // namespace

void amx_gemm(const ProductSize& size, const Factor<BFloat16>& a, const Factor<BFloat16>& b, const Product& c) {
  multiply(size, a, b, c.data, c.stride, kFloatDepth);
}

void amx_gemm(const ProductSize& size, const Factor<BFloat16>& a, const Factor<BFloat16>& b, BFloat16* c,
              int64_t stride) {
  multiply(size, a, b, c, stride, kAmxRoundedDepth);
}

}  // namespace trainyard::ops::cpu
