#include "chat/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "chat/letters.h"
#include "chat/rendering.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::chat {
namespace {
using namespace std::string_view_literals;

constexpr std::array kOperators{"//"sv, "**"sv, "=="sv, "!="sv, ">="sv, "<="sv, "+"sv, "-"sv, "/"sv,
                                "*"sv,  "%"sv,  "~"sv,  "["sv,  "]"sv,  "("sv,  ")"sv, "{"sv, "}"sv,
                                ">"sv,  "<"sv,  "="sv,  "."sv,  ":"sv,  "|"sv,  ","sv, ";"sv};

/// "\n" for each end of a line, and the last one left out.
std::string with_plain_lines(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
      continue;
    }
    text += '\n';
    if (source.substr(i + 1).starts_with('\n')) ++i;
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_character(char c) {
  return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Follows jinja2.lexer.Lexer.tokeniter.
class Lexer {
 public:
  Lexer(std::string_view source, const std::string& name) : source_(with_plain_lines(source)), name_(name) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) read_text();
    add(TokenKind::End, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(std::string_view message) const { fail_at(name_, line_, message); }
  [[nodiscard]] std::string_view rest() const { return std::string_view(source_).substr(at_); }
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void advance(size_t bytes) {
    line_ += static_cast<int>(std::count(source_.begin() + at_, source_.begin() + at_ + bytes, '\n'));
    at_ += bytes;
    if (bytes > 0) is_at_line_start_ = source_[at_ - 1] == '\n';
  }

  bool take(std::string_view text) {
    if (!rest().starts_with(text)) return false;
    advance(text.size());
    return true;
  }

  void skip_space() { advance(rest().size() - stripped(rest(), Side::Left).size()); }

  /// Text up to what begins at `end`, which is `opening` with the sign `sign` behind it.
  void add_text(size_t end, char opening, char sign) {
    std::string_view text = std::string_view(source_).substr(at_, end - at_);
    if (sign == '-') {
      text = stripped(text, Side::Right);
    } else if (sign != '+' && opening != '{') {
      const size_t line = text.rfind('\n') + 1;
      if ((line > 0 || is_at_line_start_) && stripped(text.substr(line), Side::Left).empty())
        text = text.substr(0, line);
    }
    if (!text.empty()) add(TokenKind::Text, std::string(text));
    advance(end - at_);
  }

  [[nodiscard]] size_t next_opening() const {
    for (size_t at = source_.find('{', at_); at != std::string::npos; at = source_.find('{', at + 1))
      if (at + 1 < source_.size() && "{%#"sv.find(source_[at + 1]) != std::string_view::npos) return at;
    return source_.size();
  }

  [[nodiscard]] char sign_at(size_t at) const {
    return at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : ' ';
  }

  void read_text() {
    const size_t end = next_opening();
    if (end == source_.size()) {
      add(TokenKind::Text, std::string(rest()));
      return advance(rest().size());
    }
    const char opening = source_[end + 1], sign = sign_at(end + 2);
    add_text(end, opening, sign);
    if (opening == '%' && take_raw(end + 2 + (sign != ' '))) return read_raw();
    const int line = line_;
    advance(2 + (sign != ' '));
    if (opening == '#') return read_comment();
    tokens_.push_back({opening == '{' ? TokenKind::PrintBegin : TokenKind::TagBegin, "", line});
    while (at_ < source_.size() && !read_end(opening)) read_token();
    brackets_.clear();
  }

  /// Takes the whole tag `raw` where it is one, whose words begin at `words`.
  bool take_raw(size_t words) {
    std::string_view left = stripped(std::string_view(source_).substr(words), Side::Left);
    if (!left.starts_with("raw")) return false;
    left = stripped(left.substr(3), Side::Left);
    const bool strips = left.starts_with("-%}");
    if (!strips && !left.starts_with("%}")) return false;
    left.remove_prefix(strips ? 3 : 2);
    if (strips) left = stripped(left, Side::Left);
    advance(rest().size() - left.size());
    return true;
  }

  /// How long the tag `endraw` at `at` is up to its end sign; 0 where there is none.
  [[nodiscard]] size_t endraw_at(size_t at) const {
    std::string_view left = std::string_view(source_).substr(at + 2 + (sign_at(at + 2) != ' '));
    left = stripped(left, Side::Left);
    if (!left.starts_with("endraw")) return 0;
    left = stripped(left.substr(6), Side::Left);
    if (!left.starts_with("%}") && !left.starts_with("-%}") && !left.starts_with("+%}")) return 0;
    return source_.size() - at - left.size();
  }

  void read_raw() {
    if (at_ == source_.size()) return;  // as Jinja2
    for (size_t at = source_.find("{%", at_); at != std::string::npos; at = source_.find("{%", at + 2)) {
      const size_t bytes = endraw_at(at);
      if (bytes == 0) continue;
      add_text(at, '%', sign_at(at + 2));
      advance(bytes);
      static_cast<void>(take_tag_end());
      return;
    }
    fail("the tag raw has no endraw");
  }

  void read_comment() {
    if (at_ == source_.size()) return;  // as Jinja2
    for (; at_ < source_.size(); advance(1)) {
      if (take("+#}")) return;
      if (take("-#}")) return skip_space();
      if (take("#}")) return static_cast<void>(take("\n"));
    }
    fail("a comment has no end");
  }

  bool take_tag_end() {
    if (take("+%}")) return true;
    if (take("-%}")) return skip_space(), true;
    if (!take("%}")) return false;
    static_cast<void>(take("\n"));
    return true;
  }

  bool take_print_end() {
    if (take("-}}")) return skip_space(), true;
    return take("}}");
  }

  /// Takes the end of the tag where that is here. What ends a tag is an operator while a bracket is open.
  bool read_end(char opening) {
    const int line = line_;
    if (!brackets_.empty() || !(opening == '{' ? take_print_end() : take_tag_end())) return false;
    tokens_.push_back({opening == '{' ? TokenKind::PrintEnd : TokenKind::TagEnd, "", line});
    return true;
  }

  void read_token() {
    if (const size_t space = rest().size() - stripped(rest(), Side::Left).size(); space > 0) return advance(space);
    const char first = source_[at_];
    if (is_digit(first)) return read_number();
    if (is_name_character(first)) return read_name();
    if (first == '\'' || first == '"') return read_string(first);
    if (!tokenizer::is_ascii(first))
      fail("a character that is not ASCII stands outside of texts; such names are not offered");
    const auto* const found = std::ranges::find_if(kOperators, [&](auto text) { return rest().starts_with(text); });
    if (found == kOperators.end()) fail(fmt::format("unexpected '{}'", first));
    balance((*found)[0]);
    add(TokenKind::Operator, std::string(*found));
    advance(found->size());
  }

  void balance(char bracket) {
    const size_t opens = "([{"sv.find(bracket), closes = ")]}"sv.find(bracket);
    if (opens != std::string_view::npos) brackets_ += ")]}"[opens];
    if (closes == std::string_view::npos) return;
    if (brackets_.empty() || brackets_.back() != bracket) fail(fmt::format("unexpected '{}'", bracket));
    brackets_.pop_back();
  }

  void read_name() {
    size_t bytes = 1;
    while (bytes < rest().size() && is_name_character(rest()[bytes])) ++bytes;
    if (bytes < rest().size() && !tokenizer::is_ascii(rest()[bytes]))
      fail("a name has a character that is not ASCII; such names are not offered");
    add(TokenKind::Name, std::string(rest().substr(0, bytes)));
    advance(bytes);
  }

  /// Digits from `at` on, with single underscores between them.
  [[nodiscard]] size_t digits_end(size_t at) const {
    const auto is_digit_at = [&](size_t i) { return i < source_.size() && is_digit(source_[i]); };
    if (!is_digit_at(at)) return at;
    while (is_digit_at(at) || (at < source_.size() && source_[at] == '_' && is_digit_at(at + 1))) ++at;
    return at;
  }

  /// The end of the number with a point or an exponent that begins here; none where there is no such.
  [[nodiscard]] std::optional<size_t> float_end() const {
    if (at_ > 0 && source_[at_ - 1] == '.') return std::nullopt;
    const size_t whole = digits_end(at_);
    size_t end = whole;
    if (end < source_.size() && source_[end] == '.' && digits_end(end + 1) > end + 1) end = digits_end(end + 1);
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const size_t digits = end + 1 + (sign_at(end + 1) != ' ');
      if (digits_end(digits) > digits) end = digits_end(digits);
    }
    return end > whole ? std::optional(end) : std::nullopt;
  }

  void read_number() {
    const auto real = float_end();
    if (!real && source_[at_] == '0' && at_ + 1 < source_.size() &&
        "bBoOxX"sv.find(source_[at_ + 1]) != std::string_view::npos)
      fail("numbers that are not decimal are not offered");
    size_t end = real ? *real : digits_end(at_);
    if (!real && source_[at_] == '0')  // as Jinja2: 012 are two numbers
      while (end > at_ + 1 &&
             std::string_view(source_).substr(at_, end - at_).find_first_not_of("0_") != std::string_view::npos)
        --end;
    std::string digits = source_.substr(at_, end - at_);
    std::erase(digits, '_');
    Token token{real ? TokenKind::Float : TokenKind::Int, digits, line_};
    if (real)
      token.real = std::strtod(digits.c_str(), nullptr);
    else if (std::from_chars(digits.data(), digits.data() + digits.size(), token.whole).ec != std::errc())
      fail(fmt::format("{} is beyond 64 bits, which is not offered", digits));
    tokens_.push_back(std::move(token));
    advance(end - at_);
  }

  void read_string(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail(fmt::format("unexpected '{}': the text that it begins has no end", quote));
    add(TokenKind::String, unescaped(std::string_view(source_).substr(at_ + 1, end - at_ - 1)));
    advance(end + 1 - at_);
  }

  /// It reads escapes as Python's codec unicode_escape does.
  [[nodiscard]] std::string unescaped(std::string_view written) const {
    std::string text;
    for (size_t i = 0; i < written.size();) {
      if (written[i] != '\\')
        text += written[i++];
      else
        i += 1 + append_escape(text, written.substr(i + 1));
    }
    return text;
  }

  /// Returns how many bytes of `behind`, which follow a backslash, it stands for.
  size_t append_escape(std::string& text, std::string_view behind) const {
    constexpr std::string_view kLetters = "\\'\"abfnrtv", kMeanings = "\\'\"\a\b\f\n\r\t\v";
    const char letter = behind.front();
    if (const size_t known = kLetters.find(letter); known != std::string_view::npos) return text += kMeanings[known], 1;
    if (letter == '\n') return 1;
    if (letter == 'x') return append_character(text, behind, 1, 2, 16);
    if (letter == 'u') return append_character(text, behind, 1, 4, 16);
    if (letter == 'U') return append_character(text, behind, 1, 8, 16);
    if (letter >= '0' && letter <= '7') {
      const size_t digits = std::min(behind.find_first_not_of("01234567"), std::min<size_t>(behind.size(), 3));
      return append_character(text, behind, 0, digits, 8);
    }
    if (letter == 'N' || !tokenizer::is_ascii(letter)) fail("an escape of this kind in a text is not offered");
    return text += '\\', 0;
  }

  size_t append_character(std::string& text, std::string_view behind, size_t skipped, size_t digits, int base) const {
    const std::string_view number = behind.substr(skipped, digits);
    uint32_t character = 0;
    const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), character, base);
    if (number.size() < digits || fault != std::errc() || end != number.data() + digits || character > 0x10FFFF)
      fail("an escape in a text has too few digits, or is no character");
    if (character >= 0xD800 && character < 0xE000) fail("half a surrogate pair in a text is not offered");
    tokenizer::append_utf8(text, character);
    return skipped + digits;
  }

  const std::string source_;
  const std::string& name_;
  std::vector<Token> tokens_;
  std::string brackets_;  ///< what closes those that are open
  size_t at_ = 0;
  int line_ = 1;
  bool is_at_line_start_ = true;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source, const std::string& name) {
  tokenizer::require_utf8(source, name);
  return Lexer(source, name).run();
}

}  // namespace trainyard::chat
