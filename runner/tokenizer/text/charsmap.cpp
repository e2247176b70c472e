#include "tokenizer/text/charsmap.h"

#include <cstring>

namespace trainyard::tokenizer {

Charsmap::Charsmap(std::string_view map) {
  if (map.empty()) return;
  uint32_t trie_bytes = 0;
  std::memcpy(&trie_bytes, map.data(), sizeof(trie_bytes));
  units_.resize(trie_bytes / sizeof(uint32_t));
  std::memcpy(units_.data(), map.data() + sizeof(trie_bytes), trie_bytes);
  strings_ = map.substr(sizeof(trie_bytes) + trie_bytes);
}

Charsmap::Found Charsmap::longest_at_front(std::string_view text) const {
  if (units_.empty()) return {};
  Found found;
  uint32_t at = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (byte == 0 || label(units_[at]) != byte) break;  // a zero stands where a key's value is
    const uint32_t unit = units_[at];
    at ^= offset(unit);
    if (ends_key(unit)) found = {i + 1, strings_.data() + value(units_[at])};
  }
  return found;
}

bool Charsmap::has_keys_with(unsigned char first, unsigned char second) const {
  if (units_.empty() || first == 0 || second == 0) return false;
  const uint32_t at = offset(units_[0]) ^ first;
  return label(units_[at]) == first && label(units_[at ^ offset(units_[at]) ^ second]) == second;
}

}  // namespace trainyard::tokenizer
