#include <algorithm>
#include <array>
#include <stdexcept>

#include "tokenizer/text/pattern.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::tokenizer {
namespace {

bool is_one_of(char c, std::string_view these) {
  return these.find(c) != std::string_view::npos;
}

/// Reads a pattern from left to right, and stops at what is not in the common part of both syntaxes.
class Reader {
 public:
  explicit Reader(std::string_view pattern) : rest_(pattern) {}

  /// Alternatives up to the pattern's end, or to a closing parenthesis where this is a group.
  bool read_alternatives() {
    while (!rest_.empty() && rest_[0] != ')')
      if (!take('|') && !read_element()) return false;
    return true;
  }

  [[nodiscard]] bool is_at_end() const { return rest_.empty(); }

 private:
  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  bool take(char c) { return take(std::string_view(&c, 1)); }

  bool read_element() {
    if (rest_[0] == '(') return read_group();
    if (rest_[0] == '[') return read_class() && read_quantifier();
    if (rest_[0] == '\\') return read_escape("sS") && read_quantifier();
    if (is_one_of(rest_[0], "^$*+?{}])")) return false;
    rest_.remove_prefix(utf8_length(static_cast<unsigned char>(rest_[0])));
    return read_quantifier();
  }

  /// Case is folded to several letters in Oniguruma alone ("ss" and U+00DF), so only where no two letters do so.
  bool read_group() {
    if (take("(?i:")) {
      const size_t end = rest_.find(')');
      return end != std::string_view::npos && folds_alike(rest_.substr(0, end)) && read_group_behind_its_sign();
    }
    if (take("(?:")) return read_group_behind_its_sign();
    return (take("(?=") || take("(?!")) && read_alternatives() && take(')') && !is_repeated();
  }

  /// A group that is repeated takes memory for each time in PCRE2, up to a limit.
  bool read_group_behind_its_sign() {
    if (!read_alternatives() || !take(')')) return false;
    take('?');
    return !is_repeated();
  }

  [[nodiscard]] bool is_repeated() const { return !rest_.empty() && is_one_of(rest_[0], "*+?{"); }

  static bool folds_alike(std::string_view text) {
    constexpr std::array<std::string_view, 5> kFoldTogether{"ff", "fi", "fl", "ss", "st"};
    std::string lower(text);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return std::ranges::all_of(lower, is_ascii) && lower.find_first_of("(\\{*+.") == std::string::npos &&
           std::ranges::none_of(kFoldTogether, [&](auto two) { return lower.find(two) != std::string::npos; });
  }

  /// `letters` are the classes by a letter that may stand here.
  bool read_escape(std::string_view letters) {
    rest_.remove_prefix(1);
    if (rest_.empty()) return false;
    if (is_one_of(rest_[0], "pP")) return read_category();
    const bool is_known = is_one_of(rest_[0], "!\"#$%&()*+,-./:;=?@[\\]^_{|}~rnt") || is_one_of(rest_[0], letters);
    rest_.remove_prefix(1);
    return is_known;
  }

  /// \p{L}, \P{Lu} and the like; behind a script's name the engines take different characters.
  bool read_category() {
    static constexpr std::array<std::string_view, 36> kCategories{
        "C",  "Cc", "Cf", "Cn", "Co", "L",  "Ll", "Lm", "Lo", "Lt", "Lu", "M",  "Mc", "Me", "Mn", "N",  "Nd", "Nl",
        "No", "P",  "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S",  "Sc", "Sk", "Sm", "So", "Z",  "Zl", "Zp", "Zs"};
    rest_.remove_prefix(1);
    const size_t end = rest_.find('}');
    if (!take('{') || end == std::string_view::npos) return false;
    const std::string_view name = rest_.substr(0, end - 1);
    rest_.remove_prefix(end);
    return std::ranges::find(kCategories, name) != kCategories.end();
  }

  bool read_class() {
    take('[');
    take('^');
    if (rest_.starts_with(']')) return false;
    while (!rest_.empty() && rest_[0] != ']')
      if (!read_member()) return false;
    return take(']');
  }

  /// A character, a range of two that are written as themselves, or an escape; no class and no intersection.
  bool read_member() {
    if (rest_[0] == '\\') return read_escape("s") && !begins_range();
    if (rest_[0] == '-') return rest_.starts_with("-]") && take('-');
    if (rest_[0] == '[' || rest_.starts_with("&&")) return false;
    rest_.remove_prefix(utf8_length(static_cast<unsigned char>(rest_[0])));
    if (!begins_range()) return true;
    take('-');
    if (rest_.empty() || is_one_of(rest_[0], "-[\\")) return false;
    rest_.remove_prefix(utf8_length(static_cast<unsigned char>(rest_[0])));
    return true;
  }

  [[nodiscard]] bool begins_range() const { return rest_.starts_with('-') && !rest_.starts_with("-]"); }

  /// One of ? * + {m} {m,} {m,n}; behind the first three another ? or + makes it lazy or possessive.
  bool read_quantifier() {
    if (take('?') || take('*') || take('+')) {
      if (!take('?')) take('+');
    } else if (take('{')) {
      const size_t end = rest_.find('}');
      if (end == std::string_view::npos || !is_range(rest_.substr(0, end))) return false;
      rest_.remove_prefix(end + 1);
    }
    return !is_repeated();
  }

  /// "m", "m," or "m,n" with m <= n.
  static bool is_range(std::string_view text) {
    constexpr size_t kDigits = 3;
    const std::string_view low = text.substr(0, text.find(','));
    const std::string_view high = low.size() == text.size() ? low : text.substr(low.size() + 1);
    const auto is_number = [](std::string_view digits) {
      return digits.size() <= kDigits && std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
    };
    if (low.empty() || !is_number(low) || !is_number(high)) return false;
    return high.empty() || std::stoi(std::string(low)) <= std::stoi(std::string(high));
  }

  std::string_view rest_;
};

}  // namespace

bool is_read_alike(const std::string& pattern) {
  Reader reader(pattern);
  if (pattern.empty() || find_invalid_utf8(pattern) || !reader.read_alternatives() || !reader.is_at_end()) return false;
  try {
    return !may_match_nothing(pattern);
  } catch (const std::invalid_argument&) {
    return false;
  }
}

}  // namespace trainyard::tokenizer
