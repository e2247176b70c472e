#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace trainyard::tokenizer {

/// The ids of words met lately. A word has one place, by its hash, and takes it from whoever is there: bounded at 2 MiB
/// without any bookkeeping, one cache line a look-up. Long words and words of many ids are not kept. Not thread-safe.
class WordCache {
 public:
  /// Appends the ids of `word` and returns true where it is known.
  bool find(std::string_view word, std::vector<int32_t>& ids) const {
    const Slot& slot = slots_[slot_of(word)];
    if (word.size() != slot.length || std::memcmp(word.data(), slot.word.data(), word.size()) != 0) return false;
    ids.insert(ids.end(), slot.ids.begin(), slot.ids.begin() + slot.count);
    return true;
  }

  void keep(std::string_view word, std::span<const int32_t> ids) {
    if (word.size() > kMaxBytes || ids.size() > kMaxIds) return;
    Slot& slot = slots_[slot_of(word)];
    slot.length = static_cast<uint8_t>(word.size());
    slot.count = static_cast<uint8_t>(ids.size());
    std::copy(word.begin(), word.end(), slot.word.begin());
    std::copy(ids.begin(), ids.end(), slot.ids.begin());
  }

 private:
  static constexpr size_t kSlots = size_t{1} << 15, kMaxBytes = 22, kMaxIds = 10;
  struct alignas(64) Slot {
    uint8_t length = 0, count = 0;  ///< length 0: empty, no word is
    std::array<char, kMaxBytes> word{};
    std::array<int32_t, kMaxIds> ids{};
  };
  static_assert(sizeof(Slot) == 64);

  static size_t slot_of(std::string_view word) { return XXH3_64bits(word.data(), word.size()) % kSlots; }

  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
};

}  // namespace trainyard::tokenizer
