#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/text/normalizer.h"
#include "tokenizer/text/token_finder.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::tokenizer {

/// The tokens that were added to a vocabulary, looked for in text before anything else is done to it: first in the text
/// as it is, then between what was found in the normalised text. Immutable; threads may use one at once.
class AddedTokens {
 public:
  AddedTokens() = default;
  AddedTokens(const std::map<int32_t, AddedToken>& tokens, std::vector<Normalization> forms, SpecialTokensAre special);

  /// Whether no text has any of them: it then is one part, as it is.
  [[nodiscard]] bool is_idle() const { return raw_.is_idle() && normalized_.is_idle(); }

  /// The most that any text has of them.
  [[nodiscard]] Added sought() const { return sought_; }

  /// Hands on the parts of `text`, well-formed UTF-8, in order: tokens by their id, and normalised text without.
  void split(std::string_view text, const TokenFinder::Visit& visit) const;

  /// What `text` has of them.
  [[nodiscard]] Added found_in(std::string_view text) const;

  /// Whether the parts of `text` before and behind `cut`, which lies between two characters, have the tokens, one after
  /// another, that the whole has, and none touches the cut. Where tokens are looked for in normalised text,
  /// normalisation must not reach over the cut; near a token of the text as it is, or what is not well-formed, no cut is
  /// safe then.
  [[nodiscard]] bool is_safe_cut(std::string_view text, size_t cut) const;

  /// Whether they leave a border between words or lines (is_between_words_or_lines()) as it is: neither its white space
  /// nor the characters beside that are of a token, whatever its flags.
  [[nodiscard]] bool are_clear_of_border(std::string_view text, size_t at) const;

 private:
  TokenFinder raw_, normalized_;
  std::map<int32_t, bool> is_special_;  ///< by id, of those that count
  std::vector<Normalization> forms_;
  Added sought_ = Added::None;
};

}  // namespace trainyard::tokenizer
