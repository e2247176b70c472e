#pragma once

#include <cstdint>

namespace trainyard::data {

/// A pseudo-random order of 0 … size - 1, computed element by element: no memory, no state, the same on every rank.
/// A Feistel network over the next power of four, walked until it lands inside (fewer than four rounds on average).
class Permutation {
 public:
  /// `size` ≥ 1. Another key gives another order.
  Permutation(uint64_t size, uint64_t key);

  /// Where element `index` < size goes.
  [[nodiscard]] uint64_t operator()(uint64_t index) const;

 private:
  [[nodiscard]] uint64_t shuffled(uint64_t value) const;

  uint64_t size_, key_;
  uint32_t half_bits_;
};

/// The order of epoch number `epoch` of `size` elements: another for each.
Permutation order_of_epoch(int64_t size, uint64_t seed, int64_t epoch);

/// splitmix64's finisher: every bit of the result depends on every bit of `value`.
uint64_t mix_bits(uint64_t value);

}  // namespace trainyard::data
