#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace trainyard::tokenizer {

/// The map of a SentencePiece normaliser: a size, a double-array trie (darts-clone) of that many bytes, and a block of
/// strings, each ended by a zero, that the leaves of the trie point into. Immutable.
class Charsmap {
 public:
  struct Found {
    size_t length = 0;  ///< of what is replaced; 0: nothing is
    std::string_view replacement;
  };

  /// `map` outlives this, and parse_sentencepiece() has found it whole. "": a map of nothing.
  explicit Charsmap(std::string_view map);

  /// The longest key that `text` begins with.
  [[nodiscard]] Found longest_at_front(std::string_view text) const;
  /// Whether some key begins with these two bytes.
  [[nodiscard]] bool has_keys_with(unsigned char first, unsigned char second) const;

  // Parts of a unit of the trie.
  static constexpr uint32_t offset(uint32_t unit) { return (unit >> 10U) << ((unit & (1U << 9U)) >> 6U); }
  static constexpr uint32_t label(uint32_t unit) { return unit & (1U << 31U | 0xFFU); }
  static constexpr bool ends_key(uint32_t unit) { return (unit >> 8U & 1U) != 0; }
  static constexpr uint32_t value(uint32_t leaf) { return leaf & ~(1U << 31U); }

 private:
  std::vector<uint32_t> units_;
  std::string_view strings_;
};

}  // namespace trainyard::tokenizer
