#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/files/sentencepiece_model.h"
#include "tokenizer/text/charsmap.h"

namespace trainyard::tokenizer {

/// What a SentencePiece model does to a text before it divides it (normalizer.cc of the library): characters by its
/// map, spaces to U+2581, runs of them to one. Immutable; threads may use one at once.
class SentencePieceNormalizer {
 public:
  /// Refers to the content that `model` was parsed from only in here.
  explicit SentencePieceNormalizer(const SentencePieceModel& model);

  /// `text` is well-formed UTF-8. It follows on `before` in its document, of which it may be a part: the results of the
  /// parts, one after another, are that of the whole, but for spaces at the end of the whole.
  [[nodiscard]] std::string normalize(std::string_view text, std::string_view before) const;

  /// Whether `text` may be cut at `at`: both parts leave what the whole does, and the second then begins with U+2581.
  [[nodiscard]] bool is_border(std::string_view text, size_t at) const;

 private:
  struct Step {
    std::string_view text;
    size_t length;  ///< of what it replaces
  };
  [[nodiscard]] Step step_at_front(std::string_view text) const;
  [[nodiscard]] size_t user_defined_at_front(std::string_view text) const;
  [[nodiscard]] bool ends_with_space(std::string_view before) const;
  [[nodiscard]] bool ends_with_word(std::string_view text, size_t at) const;
  void append(std::string_view text, std::string& out) const;
  [[nodiscard]] std::string_view space() const { return escapes_ ? kPieceSpace : std::string_view(" "); }

  std::string map_;  ///< what charsmap_ refers to
  Charsmap charsmap_;
  std::vector<std::string> user_defined_;  ///< taken as they are, the longest first
  size_t longest_step_;                    ///< no step takes more bytes
  std::array<bool, 256> stays_{};          ///< the byte is a character that stays as it is where ASCII follows
  std::array<bool, 256> begins_user_defined_{};
  bool adds_prefix_, adds_suffix_, removes_spaces_, escapes_;
};

}  // namespace trainyard::tokenizer
