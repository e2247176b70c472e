#pragma once

#include <cstdint>

#include "ops/dropout.h"

// The generator of ops/dropout.h, for the kernels of every device.
namespace trainyard::ops {

constexpr uint64_t mix_bits(uint64_t z) {
  z += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

/// One token's random numbers, by column.
struct DropoutStream {
  uint32_t low, high;

  constexpr DropoutStream(uint64_t seed, int64_t sequence, uint64_t token)
      : DropoutStream(mix_bits(mix_bits(seed ^ mix_bits(static_cast<uint64_t>(sequence))) + token)) {}
  constexpr explicit DropoutStream(uint64_t stream)
      : low(static_cast<uint32_t>(stream)), high(static_cast<uint32_t>(stream >> 32U)) {}
};

/// Where the tokens of a tensor stand in the rows of a batch.
struct DropoutTokens {
  const int64_t* sequences;
  int64_t rows, tokens, first;

  /// The stream of token `token` of the tensor. What is padding behind the last row is 0 and stays so.
  [[nodiscard]] constexpr DropoutStream stream(uint64_t seed, int64_t token) const {
    const int64_t place = first + token, row = place / tokens;
    return {seed, sequences[row < rows ? row : rows - 1], static_cast<uint64_t>(place % tokens)};
  }
};

[[gnu::always_inline]] constexpr uint32_t dropout_bits(DropoutStream stream, uint32_t column) {
  uint32_t u = (column + stream.low) ^ stream.high;
  u = (u ^ (u >> 16U)) * 0x7feb352dU;
  u = (u ^ (u >> 15U)) * 0x846ca68bU;
  return u ^ (u >> 16U);
}

struct DropoutRate {
  uint32_t threshold;  ///< dropped below
  float scale;         ///< of what is kept

  explicit DropoutRate(float rate)
      : threshold(static_cast<uint32_t>(static_cast<double>(rate) * 0x1.0p32)), scale(1.0F / (1.0F - rate)) {}
};

}  // namespace trainyard::ops
