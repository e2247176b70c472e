#include "chat/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "chat/letters.h"
#include "chat/operators.h"

namespace trainyard::chat {
namespace {
using namespace std::string_view_literals;

// The names that Python's types have. What is none of them is asked of the value itself.
constexpr std::array kTextNames{
    "capitalize"sv, "casefold"sv,     "center"sv,       "count"sv,   "encode"sv,     "endswith"sv,    "expandtabs"sv,
    "find"sv,       "format"sv,       "format_map"sv,   "index"sv,   "isalnum"sv,    "isalpha"sv,     "isascii"sv,
    "isdecimal"sv,  "isdigit"sv,      "isidentifier"sv, "islower"sv, "isnumeric"sv,  "isprintable"sv, "isspace"sv,
    "istitle"sv,    "isupper"sv,      "join"sv,         "ljust"sv,   "lower"sv,      "lstrip"sv,      "maketrans"sv,
    "partition"sv,  "removeprefix"sv, "removesuffix"sv, "replace"sv, "rfind"sv,      "rindex"sv,      "rjust"sv,
    "rpartition"sv, "rsplit"sv,       "rstrip"sv,       "split"sv,   "splitlines"sv, "startswith"sv,  "strip"sv,
    "swapcase"sv,   "title"sv,        "translate"sv,    "upper"sv,   "zfill"sv};
constexpr std::array kDictNames{"clear"sv, "copy"sv,    "fromkeys"sv,   "get"sv,    "items"sv, "keys"sv,
                                "pop"sv,   "popitem"sv, "setdefault"sv, "update"sv, "values"sv};
constexpr std::array kListNames{"append"sv, "clear"sv, "copy"sv,   "count"sv,   "extend"sv, "index"sv,
                                "insert"sv, "pop"sv,   "remove"sv, "reverse"sv, "sort"sv};
constexpr std::array kTupleNames{"count"sv, "index"sv};
constexpr std::array kNumberNames{"as_integer_ratio"sv, "bit_count"sv,  "bit_length"sv, "conjugate"sv, "denominator"sv,
                                  "fromhex"sv,          "from_bytes"sv, "hex"sv,        "imag"sv,      "is_integer"sv,
                                  "numerator"sv,        "real"sv,       "to_bytes"sv};
constexpr std::array kChanging{"append"sv, "clear"sv,   "extend"sv, "insert"sv,     "pop"sv,   "popitem"sv,
                               "remove"sv, "reverse"sv, "sort"sv,   "setdefault"sv, "update"sv};

bool has_name(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_method(const Value& value, std::string_view name) {
  switch (value.kind()) {
    case Kind::String:
      return has_name(kTextNames, name);
    case Kind::Dict:
      return has_name(kDictNames, name);
    case Kind::List:
      return has_name(kListNames, name);
    case Kind::Tuple:
      return has_name(kTupleNames, name);
    case Kind::Bool:
    case Kind::Int:
    case Kind::Float:
      return has_name(kNumberNames, name);
    default:
      return false;
  }
}

Value loop_attribute(const Value& value, const std::string& name, Rendering& rendering) {
  const LoopState& loop = value.loop();
  const auto index = static_cast<int64_t>(loop.index), size = static_cast<int64_t>(loop.items.size());
  if (name == "index") return Value::of(index + 1);
  if (name == "index0") return Value::of(index);
  if (name == "revindex") return Value::of(size - index);
  if (name == "revindex0") return Value::of(size - index - 1);
  if (name == "first") return Value::of(index == 0);
  if (name == "last") return Value::of(index + 1 == size);
  if (name == "length") return Value::of(size);
  if (name == "previtem")
    return index == 0 ? Value::undefined("there is no previous item") : loop.items[loop.index - 1];
  if (name == "nextitem")
    return index + 1 >= size ? Value::undefined("there is no next item") : loop.items[loop.index + 1];
  if (name == "cycle") return Value::of(std::make_shared<const Callable>(Callable{"loop.cycle", value}));
  for (const std::string_view other : {"changed"sv, "depth"sv, "depth0"sv})
    if (name == other) rendering.refuse("loop." + name);
  return Value::undefined(fmt::format("'loop' has no attribute '{}'", name));
}

Value missing(const Value& value, std::string_view name) {
  return Value::undefined(fmt::format("a value of the type {} has no attribute or key '{}'", type_name(value), name));
}

Value method(const Value& value, const std::string& name, Rendering& rendering) {
  if (value.is_markup()) rendering.refuse("a method of what |safe or |escape made");
  if (value.is_number()) rendering.refuse(fmt::format("'{}' of a number", name));
  if ((value.is(Kind::List) || value.is(Kind::Dict)) && has_name(kChanging, name))
    return Value::undefined(fmt::format("'{}' changes a {}, which a template may not", name, type_name(value)));
  return Value::of(std::make_shared<const Callable>(Callable{name, value}));
}

/// The element of a list or a text; none where there is no such.
const Value* in_list(const Values& items, int64_t index) {
  const auto size = static_cast<int64_t>(items.size());
  if (index < -size || index >= size) return nullptr;
  return &items[static_cast<size_t>(index < 0 ? index + size : index)];
}

std::optional<Value> plain_element(const Value& value, const Value& key, Rendering& rendering) {
  if (value.is(Kind::Dict)) {
    if (!has_hash(key)) return std::nullopt;
    const Value* const found = value.dict().find(key, rendering);
    return found ? std::optional(*found) : std::nullopt;
  }
  if (!key.is_whole()) return std::nullopt;
  if (value.is(Kind::String)) {
    if (value.is_markup()) rendering.refuse("a character of what |safe or |escape made");
    const std::string& text = value.text();
    rendering.look_through(text.size());
    if (is_ascii_text(text)) {
      const auto size = static_cast<int64_t>(text.size());
      if (key.whole() < -size || key.whole() >= size) return std::nullopt;
      return Value::of(std::string(1, text[static_cast<size_t>(key.whole() + (key.whole() < 0 ? size : 0))]));
    }
    const Values characters = elements_of(value, rendering);
    const Value* const found = in_list(characters, key.whole());
    return found ? std::optional(*found) : std::nullopt;
  }
  if (!value.is(Kind::List) && !value.is(Kind::Tuple) && !value.is(Kind::Range)) return std::nullopt;
  const Value* const found = in_list(value.items_of_sequence().items, key.whole());
  return found ? std::optional(*found) : std::nullopt;
}

std::string label(const Value& key) {
  if (key.is(Kind::String)) return key.text();
  return key.is_whole() ? fmt::format("{}", key.whole()) : std::string(type_name(key));
}

// Methods of texts

/// Bytes of the first, or the last, character of a text that is not empty.
size_t character_bytes(std::string_view text, bool of_last) {
  const auto is_inside = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };
  size_t bytes = 1;
  if (of_last)
    while (is_inside(text.size() - bytes)) ++bytes;
  else
    while (bytes < text.size() && is_inside(bytes)) ++bytes;
  return bytes;
}

/// Bytes of the word at the front, or the back, of `text`.
size_t word_bytes(std::string_view text, bool of_last) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    const std::string_view rest = of_last ? text.substr(0, text.size() - bytes) : text.substr(bytes);
    const size_t next = character_bytes(rest, of_last);
    if (stripped(of_last ? rest.substr(rest.size() - next) : rest.substr(0, next), Side::Left).empty()) break;
    bytes += next;
  }
  return bytes;
}

Value words_of(const std::string& text, int64_t most, bool from_back, Rendering& rendering) {
  Values words;
  const Side side = from_back ? Side::Right : Side::Left;
  std::string_view left = stripped(text, side);
  while (!left.empty() && (most < 0 || static_cast<int64_t>(words.size()) < most)) {
    rendering.make(sizeof(Value));
    const size_t bytes = word_bytes(left, from_back);
    words.push_back(Value::of(std::string(from_back ? left.substr(left.size() - bytes) : left.substr(0, bytes))));
    left = stripped(from_back ? left.substr(0, left.size() - bytes) : left.substr(bytes), side);
  }
  if (!left.empty()) words.push_back(Value::of(std::string(left)));
  if (from_back) std::ranges::reverse(words);
  return Value::sequence(Kind::List, std::move(words), rendering);
}

Value split_text(const std::string& text, const Bound& bound, bool from_back, Rendering& rendering) {
  const int64_t most = bound.whole(1, -1);
  rendering.make_text(2 * text.size());
  if (bound.value(0).is(Kind::None)) return words_of(text, most, from_back, rendering);
  const std::string& separator = bound.text(0);
  if (separator.empty()) rendering.fail("split: the separator is empty");
  Values parts;
  std::string_view left = text;
  while (most < 0 || static_cast<int64_t>(parts.size()) < most) {
    const size_t at = from_back ? left.rfind(separator) : left.find(separator);
    if (at == std::string_view::npos) break;
    const std::string_view behind = left.substr(at + separator.size()), before = left.substr(0, at);
    parts.push_back(Value::of(std::string(from_back ? behind : before)));
    left = from_back ? before : behind;
    rendering.make(sizeof(Value));
  }
  parts.push_back(Value::of(std::string(left)));
  if (from_back) std::ranges::reverse(parts);
  return Value::sequence(Kind::List, std::move(parts), rendering);
}

bool begins_or_ends(const std::string& text, const Bound& bound, bool begins, Rendering& rendering) {
  const auto fits = [&](const std::string& part) { return begins ? text.starts_with(part) : text.ends_with(part); };
  if (bound.value(0).is(Kind::Tuple)) {
    const Values& parts = bound.value(0).items_of_sequence().items;
    return std::ranges::any_of(parts, [&](const Value& part) {
      if (!part.is(Kind::String)) rendering.fail("startswith and endswith ask for texts");
      return fits(part.text());
    });
  }
  return fits(bound.text(0));
}

Value joined(const std::string& separator, const Value& parts, Rendering& rendering) {
  std::string text;
  bool is_first = true;
  for (const Value& part : elements_of(parts, rendering)) {
    if (!part.is(Kind::String)) rendering.fail(fmt::format("join: a value of the type {} is no text", type_name(part)));
    if (!is_first) text += separator;
    is_first = false;
    text += part.text();
    rendering.make_text(separator.size() + part.text().size());
  }
  return Value::of(std::move(text));
}

Value stripped_text(const std::string& text, const Bound& bound, Side side) {
  if (bound.value(0).is(Kind::None)) return Value::of(std::string(stripped(text, side)));
  const std::string_view characters = bound.text(0);
  return Value::of(std::string(stripped(text, side, &characters)));
}

int64_t count_in(const std::string& text, const std::string& part) {
  if (part.empty()) return static_cast<int64_t>(length_of(text)) + 1;
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

int64_t place_in(const std::string& text, const std::string& part, bool from_back) {
  const size_t at = from_back ? text.rfind(part) : text.find(part);
  return at == std::string::npos ? -1 : static_cast<int64_t>(length_of(std::string_view(text).substr(0, at)));
}

Value without_end(const std::string& text, const std::string& part, bool is_prefix) {
  if (is_prefix && text.starts_with(part)) return Value::of(text.substr(part.size()));
  if (!is_prefix && text.ends_with(part)) return Value::of(text.substr(0, text.size() - part.size()));
  return Value::of(std::string(text));
}

Value text_method(const std::string& text, const std::string& name, const Arguments& given, Rendering& rendering) {
  rendering.look_through(text.size());
  const auto none = [&] { static_cast<void>(Bound(name, given, {}, rendering)); };
  if (name == "upper") return none(), Value::of(upper(text, rendering));
  if (name == "lower") return none(), Value::of(lower(text, rendering));
  if (name == "title") return none(), Value::of(titled(text, rendering));
  if (name == "capitalize") return none(), Value::of(capitalized(text, rendering));
  if (name == "islower") return none(), Value::of(is_lower(text));
  if (name == "isupper") return none(), Value::of(is_upper(text));
  if (name == "isspace") return none(), Value::of(!text.empty() && stripped(text, Side::Left).empty());
  if (name == "isascii") return none(), Value::of(is_ascii_text(text));
  if (name == "strip") return stripped_text(text, Bound(name, given, {"chars"}, rendering), Side::Both);
  if (name == "lstrip") return stripped_text(text, Bound(name, given, {"chars"}, rendering), Side::Left);
  if (name == "rstrip") return stripped_text(text, Bound(name, given, {"chars"}, rendering), Side::Right);
  if (name == "split" || name == "rsplit")
    return split_text(text, Bound(name, given, {"sep", "maxsplit"}, rendering), name == "rsplit", rendering);
  if (name == "splitlines") {
    none();
    Values lines;
    for (std::string& line : split_lines(text)) lines.push_back(Value::of(std::move(line)));
    return Value::sequence(Kind::List, std::move(lines), rendering);
  }
  if (name == "replace") {
    const Bound bound(name, given, {"old", "new", "count"}, rendering);
    return Value::of(replaced_in(text, bound.text(0), bound.text(1), bound.whole(2, -1), rendering));
  }
  if (name == "join") return joined(text, Bound(name, given, {"iterable"}, rendering).required(0), rendering);
  const Bound one(name, given, {"text"}, rendering);
  if (name == "startswith" || name == "endswith")
    return Value::of(begins_or_ends(text, one, name == "startswith", rendering));
  if (name == "count") return Value::of(count_in(text, one.text(0)));
  if (name == "removeprefix" || name == "removesuffix") return without_end(text, one.text(0), name == "removeprefix");
  const int64_t place = place_in(text, one.text(0), name.starts_with('r'));
  if (place < 0 && name.ends_with("index")) rendering.fail(fmt::format("{}: the text is not in it", name));
  return Value::of(place);
}

constexpr std::array kOfferedOfTexts{"upper"sv,   "lower"sv,      "title"sv,    "capitalize"sv,   "islower"sv,
                                     "isupper"sv, "isspace"sv,    "isascii"sv,  "strip"sv,        "lstrip"sv,
                                     "rstrip"sv,  "split"sv,      "rsplit"sv,   "splitlines"sv,   "replace"sv,
                                     "join"sv,    "startswith"sv, "endswith"sv, "count"sv,        "find"sv,
                                     "rfind"sv,   "index"sv,      "rindex"sv,   "removeprefix"sv, "removesuffix"sv};

// Methods of the others

Value dict_method(const Value& self, const std::string& name, const Arguments& given, Rendering& rendering) {
  const Dict& dict = self.dict();
  if (name == "get") {
    const Bound bound(name, given, {"key", "default"}, rendering);
    const Value* const found = dict.find(bound.required(0), rendering);
    return found ? *found : bound.value(1);
  }
  static_cast<void>(Bound(name, given, {}, rendering));
  if (name == "copy") return self;
  Values items;
  rendering.step(dict.entries.size());
  for (const auto& [key, value] : dict.entries) {
    if (name == "keys") items.push_back(key);
    if (name == "values") items.push_back(value);
    if (name == "items") items.push_back(Value::sequence(Kind::Tuple, {key, value}, rendering));
  }
  return Value::sequence(Kind::View, std::move(items), rendering, "dict_" + name);
}

Value list_method(const Value& self, const std::string& name, const Arguments& given, Rendering& rendering) {
  if (name == "copy") return self;
  const Bound bound(name, given, {"value"}, rendering);
  const Values& items = self.items_of_sequence().items;
  int64_t count = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!equal(items[i], bound.required(0), rendering)) continue;
    if (name == "index") return Value::of(static_cast<int64_t>(i));
    ++count;
  }
  if (name == "index") rendering.fail("index: the value is not in the list");
  return Value::of(count);
}

}  // namespace

Value attribute_of(const Value& value, const std::string& name, Rendering& rendering) {
  require_defined(value, rendering);
  if (value.is(Kind::Loop)) return loop_attribute(value, name, rendering);
  if (value.is(Kind::Namespace)) {
    const Value* const found = value.ns().attributes.find(name);
    return found ? *found : missing(value, name);
  }
  if (value.is(Kind::Callable)) rendering.refuse(fmt::format("the attribute '{}' of a function", name));
  if ((value.is(Kind::Range) || value.is(Kind::View)) && !name.starts_with('_'))
    rendering.refuse(fmt::format("the attribute '{}' of the type {}", name, type_name(value)));
  if (is_method(value, name)) return method(value, name, rendering);
  if (value.is(Kind::Dict))
    if (const Value* const found = value.dict().find(name)) return *found;
  return missing(value, name);
}

Value element_of(const Value& value, const Value& key, Rendering& rendering) {
  require_defined(value, rendering);
  if (auto found = plain_element(value, key, rendering)) return *std::move(found);
  if (key.is(Kind::String) && (value.is(Kind::Namespace) || value.is(Kind::Loop) || is_method(value, key.text())))
    return attribute_of(value, key.text(), rendering);
  return missing(value, label(key));
}

Value call_method(const Value& self, const std::string& name, const Arguments& arguments, Rendering& rendering) {
  if (self.is(Kind::Loop)) {
    if (arguments.positional.empty() || !arguments.named.empty())
      rendering.fail("loop.cycle needs values, none of them with a name");
    return arguments.positional[self.loop().index % arguments.positional.size()];
  }
  if (self.is(Kind::String) && has_name(kOfferedOfTexts, name))
    return text_method(self.text(), name, arguments, rendering);
  if (self.is(Kind::Dict) && name != "fromkeys") return dict_method(self, name, arguments, rendering);
  if (self.is(Kind::List) || self.is(Kind::Tuple)) return list_method(self, name, arguments, rendering);
  rendering.refuse(fmt::format("the method '{}' of the type {}", name, type_name(self)));
}

}  // namespace trainyard::chat
