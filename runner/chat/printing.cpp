#include "chat/printing.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "chat/letters.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::chat {
namespace {

void append_repr_character(std::string& text, char32_t c, char quote) {
  if (c == static_cast<unsigned char>(quote) || c == '\\')
    text += '\\', text += static_cast<char>(c);
  else if (c == '\n')
    text += "\\n";
  else if (c == '\r')
    text += "\\r";
  else if (c == '\t')
    text += "\\t";
  else if (is_printable(c))
    tokenizer::append_utf8(text, c);
  else if (const auto code = static_cast<uint32_t>(c); code < 0x100)
    text += fmt::format("\\x{:02x}", code);
  else if (code < 0x10000)
    text += fmt::format("\\u{:04x}", code);
  else
    text += fmt::format("\\U{:08x}", code);
}

std::string text_repr(const std::string& written) {
  const bool has_single = written.find('\'') != std::string::npos, has_double = written.find('"') != std::string::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string text(1, quote);
  for (size_t at = 0; at < written.size(); at += tokenizer::utf8_length(static_cast<unsigned char>(written[at])))
    append_repr_character(text, tokenizer::decode_utf8(written, at), quote);
  return text += quote;
}

std::string joined_reprs(const Values& items, Rendering& rendering) {
  std::string text;
  for (const Value& item : items) {
    if (!text.empty()) text += ", ";
    text += to_repr(item, rendering);
  }
  return text;
}

std::string dict_repr(const Dict& dict, Rendering& rendering) {
  std::string text;
  for (const auto& [key, value] : dict.entries) {
    if (!text.empty()) text += ", ";
    text += to_repr(key, rendering) + ": " + to_repr(value, rendering);
  }
  return "{" + text + "}";
}

std::string sequence_repr(const Value& value, Rendering& rendering) {
  const Sequence& sequence = value.items_of_sequence();
  if (value.is(Kind::Range)) return sequence.name;
  const std::string items = joined_reprs(sequence.items, rendering);
  if (value.is(Kind::Tuple)) return "(" + items + (sequence.items.size() == 1 ? ",)" : ")");
  return value.is(Kind::View) ? fmt::format("{}([{}])", sequence.name, items) : "[" + items + "]";
}

}  // namespace

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer{};
  const auto written =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  const std::string_view shortest(buffer.data(), static_cast<size_t>(written.ptr - buffer.data()));
  const size_t e = shortest.find('e');
  int exponent = 0;
  const size_t sign = shortest[e + 1] == '+' ? 2 : 1;
  std::from_chars(shortest.data() + e + sign, shortest.data() + shortest.size(), exponent);
  if (exponent < -4 || exponent >= 16) return std::string(shortest);
  const auto fixed = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
  std::string text(buffer.data(), fixed.ptr);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string to_text(const Value& value, Rendering& rendering) {
  if (value.is(Kind::String)) return value.text();
  if (value.is(Kind::Undefined)) return "";
  std::string text = to_repr(value, rendering);
  return text;
}

std::string to_repr(const Value& value, Rendering& rendering) {
  rendering.step();
  switch (value.kind()) {
    case Kind::Undefined:
      return "Undefined";
    case Kind::None:
      return "None";
    case Kind::Bool:
      return value.flag() ? "True" : "False";
    case Kind::Int:
      return fmt::format("{}", value.whole());
    case Kind::Float:
      return float_text(value.real());
    case Kind::String: {
      if (value.is_markup()) rendering.refuse("a list's text with what |safe or |escape made");
      std::string text = text_repr(value.text());
      rendering.make_text(text.size());
      return text;
    }
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
    case Kind::View: {
      std::string text = sequence_repr(value, rendering);
      rendering.make_text(text.size());
      return text;
    }
    case Kind::Dict: {
      std::string text = dict_repr(value.dict(), rendering);
      rendering.make_text(text.size());
      return text;
    }
    default:
      rendering.refuse(fmt::format("the text of a value of the type {}", type_name(value)));
  }
}

}  // namespace trainyard::chat
