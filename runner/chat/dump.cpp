#include "chat/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chat/printing.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::chat {
namespace {

class Dumper {
 public:
  Dumper(const DumpStyle& style, Rendering& rendering) : style_(style), rendering_(rendering) {}

  std::string run(const Value& value) {
    add(value, 0);
    rendering_.make_text(text_.size());
    return std::move(text_);
  }

 private:
  void add(const Value& value, size_t level) {
    rendering_.step();
    if (text_.size() > checked_) rendering_.make_text(checked_ = 2 * text_.size());
    switch (value.kind()) {
      case Kind::String:
        return add_text(value.text());
      case Kind::List:
      case Kind::Tuple:
        return add_list(value.items_of_sequence().items, level);
      case Kind::Dict:
        return add_dict(value.dict(), level);
      case Kind::None:
      case Kind::Bool:
      case Kind::Int:
      case Kind::Float:
        text_ += word_of(value);
        return;
      default:
        rendering_.fail(fmt::format("tojson: a value of the type {} has no JSON", type_name(value)));
    }
  }

  /// What is no text is the same as a value and as a key.
  [[nodiscard]] static std::string word_of(const Value& value) {
    if (value.is(Kind::None)) return "null";
    if (value.is(Kind::Bool)) return value.flag() ? "true" : "false";
    if (value.is(Kind::Int)) return fmt::format("{}", value.whole());
    if (std::isnan(value.real())) return "NaN";
    if (std::isinf(value.real())) return value.real() < 0 ? "-Infinity" : "Infinity";
    return float_text(value.real());
  }

  void add_text(const std::string& written) {
    text_ += '"';
    for (size_t at = 0; at < written.size(); at += tokenizer::utf8_length(static_cast<unsigned char>(written[at])))
      add_character(tokenizer::decode_utf8(written, at));
    text_ += '"';
  }

  void add_character(char32_t c) {
    constexpr std::string_view kNamed = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
    const size_t named = c < 0x80 ? kNamed.find(static_cast<char>(c)) : std::string_view::npos;
    if (named != std::string_view::npos)
      text_ += '\\', text_ += kLetters[named];
    else if (c < 0x20 || (style_.ensure_ascii && c > 0x7E && c < 0x10000 && c != 0x7F))
      text_ += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    else if (style_.ensure_ascii && c >= 0x10000)
      text_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((static_cast<uint32_t>(c) - 0x10000) >> 10U),
                           0xDC00 + ((static_cast<uint32_t>(c) - 0x10000) & 0x3FFU));
    else
      tokenizer::append_utf8(text_, c);
  }

  void break_line(size_t level) {
    if (!style_.indent) return;
    rendering_.make_text(level * style_.indent->size());
    text_ += '\n';
    for (size_t i = 0; i < level; ++i) text_ += *style_.indent;
  }

  void add_list(const Values& items, size_t level) {
    if (items.empty()) return static_cast<void>(text_ += "[]");
    text_ += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) text_ += style_.item_separator;
      break_line(level + 1);
      add(items[i], level + 1);
    }
    break_line(level);
    text_ += ']';
  }

  [[nodiscard]] std::string key_of(const Value& key) const {
    if (key.is(Kind::String)) return key.text();
    if (key.is_number() || key.is(Kind::None)) return word_of(key);
    rendering_.fail(fmt::format("tojson: a value of the type {} is no key of JSON", type_name(key)));
  }

  [[nodiscard]] std::vector<const std::pair<Value, Value>*> entries_of(const Dict& dict) const {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (!style_.sort_keys) return entries;
    for (const auto* const entry : entries)
      if (!entry->first.is(Kind::String)) rendering_.refuse("tojson with sort_keys of keys that are no texts");
    std::ranges::sort(entries, [](const auto* a, const auto* b) { return a->first.text() < b->first.text(); });
    return entries;
  }

  void add_dict(const Dict& dict, size_t level) {
    if (dict.entries.empty()) return static_cast<void>(text_ += "{}");
    text_ += '{';
    bool is_first = true;
    for (const auto* const entry : entries_of(dict)) {
      if (!is_first) text_ += style_.item_separator;
      is_first = false;
      break_line(level + 1);
      add_text(key_of(entry->first));
      text_ += style_.key_separator;
      add(entry->second, level + 1);
    }
    break_line(level);
    text_ += '}';
  }

  const DumpStyle& style_;
  Rendering& rendering_;
  std::string text_;
  size_t checked_ = 1 << 12;
};

}  // namespace

std::string dump_json(const Value& value, const DumpStyle& style, Rendering& rendering) {
  return Dumper(style, rendering).run(value);
}

}  // namespace trainyard::chat
