#include "data/permutation.h"

#include <bit>
#include <stdexcept>

namespace trainyard::data {
namespace {

constexpr uint64_t kRounds = 6;

}  // namespace

uint64_t mix_bits(uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

Permutation::Permutation(uint64_t size, uint64_t key)
    : size_(size), key_(key), half_bits_((static_cast<uint32_t>(std::bit_width(size - 1)) + 1) / 2) {
  if (size == 0 || size > uint64_t{1} << 62U) throw std::invalid_argument("Permutation: size must be from 1 to 2^62");
}

uint64_t Permutation::operator()(uint64_t index) const {
  if (index >= size_) throw std::out_of_range("Permutation: index is not below size");
  // The network permutes a power of four, so walking its cycle from a value below size_ comes to such a value again.
  do index = shuffled(index);
  while (index >= size_);
  return index;
}

Permutation order_of_epoch(int64_t size, uint64_t seed, int64_t epoch) {
  return {static_cast<uint64_t>(size), mix_bits(mix_bits(seed) ^ static_cast<uint64_t>(epoch))};
}

uint64_t Permutation::shuffled(uint64_t value) const {
  if (half_bits_ == 0) return value;
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_, right = value & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t next = left ^ (mix_bits(key_ ^ mix_bits(right + (round << 48U))) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

}  // namespace trainyard::data
