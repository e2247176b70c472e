#include "s3/xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::s3 {
namespace {

constexpr size_t kMostDepth = 16, kMostElements = 1'000'000;
constexpr std::string_view kSpace = " \t\r\n";

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.' || c == ':';
}

void append_utf8(std::string& text, uint32_t code) {
  const auto add = [&](uint32_t byte) { text += static_cast<char>(byte); };
  const auto add_rest = [&](uint32_t shift) { add(0x80U | ((code >> shift) & 0x3FU)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) return add(0xC0U | (code >> 6U)), add_rest(0);
  if (code < 0x10000) return add(0xE0U | (code >> 12U)), add_rest(6), add_rest(0);
  add(0xF0U | (code >> 18U)), add_rest(12), add_rest(6), add_rest(0);
}

/// The number of "#38" or "#x26"; none where it is no character of XML.
std::optional<uint32_t> number_of(std::string_view reference) {
  const bool is_hex = reference.starts_with("#x");
  const std::string_view digits = reference.substr(is_hex ? 2 : 1);
  if (digits.empty() || digits.size() > 8) return std::nullopt;
  uint64_t code = 0;
  for (const char c : digits) {
    const size_t digit =
        std::string_view("0123456789abcdef").find(c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c);
    if (digit >= (is_hex ? 16U : 10U)) return std::nullopt;
    code = code * (is_hex ? 16 : 10) + digit;
  }
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  if (code == 0 || code > 0x10FFFF || is_surrogate) return std::nullopt;
  return static_cast<uint32_t>(code);
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  Element document() {
    if (rest().starts_with("\xEF\xBB\xBF")) at_ += 3;
    if (rest().starts_with("<?xml")) skip_past("?>");
    skip_space();
    Element root = element(0);
    skip_space();
    if (at_ != text_.size()) fail("there is something after its end");
    return root;
  }

 private:
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }

  [[noreturn]] void fail(std::string_view what) const {
    throw InputError(fmt::format("{}: the answer is no XML as S3 sends it: {} (byte {})", where_, what, at_));
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(kSpace, at_), text_.size()); }

  void skip_past(std::string_view what) {
    const size_t found = text_.find(what, at_);
    if (found == std::string_view::npos) fail("it is cut off");
    at_ = found + what.size();
  }

  void take(std::string_view what) {
    if (!rest().starts_with(what)) fail(fmt::format("'{}' is missing", what));
    at_ += what.size();
  }

  std::string_view name() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    if (at_ == begin) fail("a name is missing");
    return text_.substr(begin, at_ - begin);
  }

  void skip_attributes() {
    for (skip_space(); at_ < text_.size() && is_name_character(text_[at_]); skip_space()) {
      name();
      skip_space();
      take("=");
      skip_space();
      if (at_ == text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) fail("a quote is missing");
      const char quote = text_[at_++];
      skip_past(std::string_view(&quote, 1));
    }
  }

  void add_reference(std::string& to) {
    constexpr std::array<std::pair<std::string_view, char>, 5> kKnown{
        {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}}};
    const size_t end = rest().substr(0, 12).find(';');
    if (end == std::string_view::npos) fail("'&' begins nothing");
    const std::string_view reference = rest().substr(1, end - 1);
    const auto known = std::ranges::find(kKnown, reference, &std::pair<std::string_view, char>::first);
    if (known != kKnown.end()) {
      to += known->second;
    } else {
      const auto code = reference.starts_with("#") ? number_of(reference) : std::nullopt;
      if (!code) fail("it has an entity of its own");
      append_utf8(to, *code);
    }
    at_ += end + 1;
  }

  void add_text(std::string& to) {
    const size_t end = std::min(text_.find_first_of("<&", at_), text_.size());
    to += text_.substr(at_, end - at_);
    at_ = end;
    if (at_ < text_.size() && text_[at_] == '&') add_reference(to);
  }

  Element element(size_t depth) {
    if (depth == kMostDepth) fail("its elements are too deep");
    if (++elements_ > kMostElements) fail("it has too many elements");
    take("<");
    Element element{.name = std::string(name()), .text = {}, .children = {}};
    skip_attributes();
    if (rest().starts_with("/>")) return at_ += 2, element;
    take(">");
    while (!rest().starts_with("</")) {
      if (at_ == text_.size()) fail("it is cut off");
      if (text_[at_] == '<')
        element.children.push_back(this->element(depth + 1));
      else
        add_text(element.text);
    }
    take("</");
    if (name() != element.name) fail(fmt::format("'{}' ends as another element", element.name));
    skip_space();
    take(">");
    return element;
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0;
  size_t elements_ = 0;
};

}  // namespace

const Element* Element::find(std::string_view child) const {
  const auto found = std::ranges::find(children, child, &Element::name);
  return found == children.end() ? nullptr : &*found;
}

std::string Element::text_of(std::string_view child) const {
  const Element* const found = find(child);
  return found ? std::string(trim(found->text)) : "";
}

Element parse_xml(std::string_view text, const std::string& where) {
  return Reader(text, where).document();
}

}  // namespace trainyard::s3
