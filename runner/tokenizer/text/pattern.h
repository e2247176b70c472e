#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::tokenizer {

/// Whose syntax a split pattern is written in.
enum class PatternSyntax {
  Pcre2,      ///< tiktoken's files
  Oniguruma,  ///< what tokenizer.json calls a Regex
  Literal     ///< the pattern is the text itself
};

struct Pcre2Space;
struct OnigurumaSpace;

/// What one search at a time works with. Each engine makes its part when it first searches.
struct SearchSpace {
  std::shared_ptr<Pcre2Space> pcre2;
  std::shared_ptr<OnigurumaSpace> oniguruma;
};

/// A compiled pattern. Immutable; threads may search at once, each with a space of its own.
class Pattern {
 public:
  struct Match {
    size_t begin, end;  ///< bytes of the text; equal where the match has no length
  };

  Pattern() = default;
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  virtual ~Pattern() = default;

  /// The first match that begins at `from` or behind it in `text`, which is well-formed UTF-8; none where there is none.
  /// Throws std::runtime_error, saying which limit was reached, where the search needs more steps than are allowed.
  [[nodiscard]] virtual std::optional<Match> find(std::string_view text, size_t from, SearchSpace& space) const = 0;
};

/// PCRE2's, compiled to machine code. It has no matches without length. Throws std::invalid_argument, saying what is
/// wrong, for what does not compile.
std::unique_ptr<Pattern> pcre2_pattern(const std::string& pattern, PatternSyntax syntax);

/// Whether a match of `pattern`, in PCRE2's syntax, may have no length. Throws the same.
bool may_match_nothing(const std::string& pattern);

/// Oniguruma's, with its own syntax and its own limit of retries, as Hugging Face `tokenizers` has it. Throws the same.
std::unique_ptr<Pattern> oniguruma_pattern(const std::string& pattern);

/// `pattern`, in Oniguruma's syntax, with the symbols ($ + < …) that [:punct:] has from Oniguruma 6.9.9 on: Hugging
/// Face `tokenizers` has that version, Debian 12 an older one. oniguruma_pattern() does this.
std::string with_symbols_in_punct(std::string_view pattern);

/// `pattern`, in the same syntax, with \w for a \p{Word} that stands in no class: that newer version reads both alike,
/// the older one without six signs (² ³ ¹ ¼ ½ ¾). oniguruma_pattern() does this, too.
std::string with_signs_in_word(std::string_view pattern);

/// Whether `pattern` is written in the part of both syntaxes that both engines read alike and run alike: literal text,
/// general categories, white space and simple classes, groups that are not repeated, quantifiers, look-ahead; and has no
/// match without length. It is then PCRE2's to run, which is several times faster.
bool is_read_alike(const std::string& pattern);

}  // namespace trainyard::tokenizer
