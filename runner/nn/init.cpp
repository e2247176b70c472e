#include "nn/init.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/cpu/parallel.h"

namespace trainyard::nn {
namespace {

/// SplitMix64 (Steele, Lea & Flood 2014): a full-period generator whose state is a counter, so streams are cheap.
struct SplitMix64 {
  uint64_t state;
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }
  /// Uniform in (0, 1].
  double uniform() { return (static_cast<double>(next() >> 11U) + 1.0) * 0x1.0p-53; }
};

SplitMix64 stream_of(uint64_t seed, uint64_t name_hash, int64_t row) {
  SplitMix64 mixer{seed};
  mixer.state = mixer.next() ^ name_hash;
  mixer.state = mixer.next() ^ static_cast<uint64_t>(row);
  return SplitMix64{mixer.next()};
}

/// Pairs of normal numbers by Box and Muller.
void fill_normal(SplitMix64 random, float deviation, std::span<float> row) {
  for (size_t i = 0; i < row.size(); i += 2) {
    const double radius = deviation * std::sqrt(-2.0 * std::log(random.uniform()));
    const double angle = 2.0 * std::numbers::pi * random.uniform();
    row[i] = static_cast<float>(radius * std::cos(angle));
    if (i + 1 < row.size()) row[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
}

void fill_uniform(SplitMix64 random, float bound, std::span<float> row) {
  for (float& value : row) value = static_cast<float>(bound * (2.0 * random.uniform() - 1.0));
}

}  // namespace

// FNV-1a: std::hash does not promise to be the same everywhere.
uint64_t hash_of(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3ULL;
  return hash;
}

void initial_rows(const autograd::Parameter& parameter, uint64_t seed, int64_t row_begin, int64_t rows,
                  std::span<float> out) {
  using Kind = autograd::Init::Kind;
  const autograd::Init init = parameter.init();
  if (init.kind == Kind::Constant) {
    std::ranges::fill(out, init.scale);
    return;
  }
  const auto fill_row = init.kind == Kind::Uniform ? fill_uniform : fill_normal;
  const uint64_t name_hash = hash_of(parameter.name());
  const size_t row_size = rows == 0 ? 0 : out.size() / static_cast<size_t>(rows);
  const auto fill_rows = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const std::span<float> values = out.subspan(static_cast<size_t>(row) * row_size, row_size);
      if (row_begin + row == init.zero_row)
        std::ranges::fill(values, 0.0F);
      else
        fill_row(stream_of(seed, name_hash, row_begin + row), init.scale, values);
    }
  };
  constexpr int64_t kGrain = 1024;  // elements a thread should have: an element takes 20 ns
  ops::cpu::parallel_for(rows, std::max<int64_t>(kGrain / static_cast<int64_t>(std::max<size_t>(row_size, 1)), 1),
                         fill_rows);
}

}  // namespace trainyard::nn
