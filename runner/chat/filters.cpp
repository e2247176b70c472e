#include "chat/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "chat/dump.h"
#include "chat/letters.h"
#include "chat/methods.h"
#include "chat/operators.h"
#include "chat/printing.h"
#include "chat/tests.h"

namespace trainyard::chat {
namespace {

struct Call {
  const std::string& name;
  const Value& value;
  const Arguments& given;
  Rendering& rendering;

  [[nodiscard]] Bound bind(std::initializer_list<std::string_view> parameters) const {
    return {"the filter '" + name + "'", given, parameters, rendering};
  }
  void takes_nothing() const { static_cast<void>(bind({})); }
  [[nodiscard]] std::string text() const { return to_text(value, rendering); }
  [[nodiscard]] Values elements() const { return elements_of(value, rendering); }
  [[nodiscard]] Value list(Values items, Kind kind = Kind::List) const {
    return Value::sequence(kind, std::move(items), rendering);
  }
};

/// "a.0.b" of an element; `otherwise` for each part that is undefined, where that is no None.
Value looked_up(Value item, const Value& path, const Value& otherwise, Rendering& rendering) {
  if (path.is(Kind::None)) return item;
  if (!path.is(Kind::String)) return element_of(item, path, rendering);
  const std::string& text = path.text();
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('.', at), text.size());
    const std::string part = text.substr(at, end - at);
    at = end + 1;
    const bool is_number =
        !part.empty() && part.size() < 18 && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    item = element_of(
        item, is_number ? Value::of(int64_t{std::strtoll(part.c_str(), nullptr, 10)}) : Value::of(std::string(part)),
        rendering);
    if (item.is(Kind::Undefined) && !otherwise.is(Kind::None)) item = otherwise;
  }
  return item;
}

Value without_case(const Value& value, bool case_counts, Rendering& rendering) {
  return !case_counts && value.is(Kind::String) ? Value::of(lower(value.text(), rendering)) : value;
}

/// What Python's generator gives: what is wrong with it is said to whom walks over it, and not before.
template <typename Give>
Value generated(const Call& call, const Give& give) {
  Values items;
  std::string fault;
  try {
    give(items);
  } catch (const InputError& error) {
    fault = error.what();
  }
  const Value made = call.list(std::move(items), Kind::Iterator);
  made.walk().fault = std::move(fault);
  return made;
}

// Texts

Value trim_filter(const Call& call) {
  const Bound bound = call.bind({"chars"});
  const std::string text = call.text();
  if (bound.value(0).is(Kind::None)) return Value::of(std::string(stripped(text, Side::Both)));
  const std::string_view characters = bound.text(0);
  return Value::of(std::string(stripped(text, Side::Both, &characters)));
}

Value title_filter(const Call& call) {
  call.takes_nothing();
  std::string made;
  bool begins_word = true;
  for (const std::string& character : characters_of(call.text())) {
    const bool separates =
        std::string_view("-({[<").find(character) != std::string_view::npos || stripped(character, Side::Left).empty();
    made += begins_word ? upper(character, call.rendering) : lower(character, call.rendering);
    begins_word = separates;
  }
  call.rendering.make_text(made.size());
  return Value::of(std::move(made));
}

Value replace_filter(const Call& call) {
  const Bound bound = call.bind({"old", "new", "count"});
  const int64_t most = bound.value(2).is(Kind::None) ? -1 : bound.whole(2);
  return Value::of(replaced_in(call.text(), to_text(bound.required(0), call.rendering),
                               to_text(bound.required(1), call.rendering), most, call.rendering));
}

Value indent_filter(const Call& call) {
  const Bound bound = call.bind({"width", "first", "blank"});
  require_defined(call.value, call.rendering);
  if (!call.value.is(Kind::String)) call.rendering.fail("the filter 'indent' takes a text");
  std::string by;
  if (bound.has(0) && bound.value(0).is(Kind::String)) {
    by = bound.text(0);
  } else {
    const auto width = static_cast<size_t>(std::max<int64_t>(bound.whole(0, 4), 0));
    call.rendering.make_text(width);
    by = std::string(width, ' ');
  }
  std::string text = bound.flag(1) ? by : "";
  bool is_first = true;
  for (const std::string& line : split_lines(call.value.text() + "\n")) {
    if (!is_first) text += '\n';
    if (!is_first && (!line.empty() || bound.flag(2))) text += by;
    is_first = false;
    text += line;
    call.rendering.make_text(line.size() + by.size());
  }
  return Value::of(std::move(text));
}

Value escape_filter(const Call& call) {
  call.takes_nothing();
  if (call.value.is_markup()) return call.value;
  std::string made;
  for (const char c : call.text()) {
    constexpr std::string_view kEscaped = "&<>'\"";
    constexpr std::array<const char*, 5> kWritten{"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    const size_t at = kEscaped.find(c);
    if (at == std::string_view::npos)
      made += c;
    else
      made += kWritten.at(at);
  }
  call.rendering.make_text(made.size());
  return Value::of(std::move(made)).as_markup();
}

Value safe_filter(const Call& call) {
  call.takes_nothing();
  return Value::of(call.text()).as_markup();
}

Value join_filter(const Call& call) {
  const Bound bound = call.bind({"d", "attribute"});
  const std::string separator = bound.has(0) ? to_text(bound.value(0), call.rendering) : "";
  std::string text;
  bool is_first = true;
  for (const Value& item : call.elements()) {
    if (!is_first) text += separator;
    is_first = false;
    const std::string part = to_text(looked_up(item, bound.value(1), Value::none(), call.rendering), call.rendering);
    text += part;
    call.rendering.make_text(separator.size() + part.size());
  }
  return Value::of(std::move(text));
}

Value tojson_filter(const Call& call) {
  const Bound bound = call.bind({"ensure_ascii", "indent", "separators", "sort_keys"});
  DumpStyle style{.ensure_ascii = bound.flag(0), .sort_keys = bound.flag(3)};
  if (const Value indent = bound.value(1); indent.is(Kind::String)) {
    style.indent = indent.text();
  } else if (!indent.is(Kind::None)) {
    const auto width = static_cast<size_t>(std::max<int64_t>(bound.whole(1), 0));
    call.rendering.make_text(width);
    style.indent = std::string(width, ' ');
  }
  if (style.indent) style.item_separator = ",";
  if (const Value separators = bound.value(2); !separators.is(Kind::None)) {
    const Values pair = elements_of(separators, call.rendering);
    if (pair.size() != 2 || !pair[0].is(Kind::String) || !pair[1].is(Kind::String))
      call.rendering.fail("the filter 'tojson': separators must be two texts");
    style.item_separator = pair[0].text();
    style.key_separator = pair[1].text();
  }
  return Value::of(dump_json(call.value, style, call.rendering));
}

// Numbers

/// What Python's int() and float() make of a text, without the underscores that both take.
std::optional<std::string> digits_of(std::string_view written) {
  std::string text(stripped(written, Side::Both));
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '_' && (i == 0 || i + 1 == text.size() || !std::isdigit(static_cast<unsigned char>(text[i - 1])) ||
                           !std::isdigit(static_cast<unsigned char>(text[i + 1]))))
      return std::nullopt;
  std::erase(text, '_');
  return text;
}

std::optional<double> parsed_float(std::string_view written) {
  const auto text = digits_of(written);
  if (!text || text->empty()) return std::nullopt;
  std::string plain = *text;
  for (char& c : plain)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  const std::string_view word =
      plain.front() == '-' || plain.front() == '+' ? std::string_view(plain).substr(1) : plain;
  const bool is_word = word == "inf" || word == "infinity" || word == "nan";
  if (!is_word && plain.find_first_not_of("0123456789.e+-") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(plain.c_str(), &end);
  return end == plain.c_str() + plain.size() ? std::optional(value) : std::nullopt;
}

std::optional<Value> parsed_int(std::string_view written, Rendering& rendering) {
  const auto text = digits_of(written);
  if (!text || text->empty()) return std::nullopt;
  const std::string_view digits = std::string_view(*text).substr(text->front() == '-' || text->front() == '+' ? 1 : 0);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  const std::string_view number = text->front() == '+' ? digits : std::string_view(*text);
  int64_t value = 0;
  if (std::from_chars(number.data(), number.data() + number.size(), value).ec != std::errc())
    rendering.refuse("a whole number beyond 64 bits");
  return Value::of(value);
}

/// int() of a float; none for what is not finite.
std::optional<Value> cut(double value, Rendering& rendering) {
  if (!std::isfinite(value)) return std::nullopt;
  if (std::abs(value) >= 0x1p63) rendering.refuse("a whole number beyond 64 bits");
  return Value::of(static_cast<int64_t>(value));
}

Value int_filter(const Call& call) {
  const Bound bound = call.bind({"default", "base"});
  if (bound.has(1) && bound.whole(1) != 10) call.rendering.refuse("the filter 'int' with a base that is not 10");
  require_defined(call.value, call.rendering);
  const Value otherwise = bound.has(0) ? bound.value(0) : Value::of(int64_t{0});
  if (call.value.is_whole()) return Value::of(call.value.whole());
  if (call.value.is(Kind::Float)) {
    if (std::isinf(call.value.real())) call.rendering.fail("the filter 'int': infinity is no whole number");
    return cut(call.value.real(), call.rendering).value_or(otherwise);
  }
  if (!call.value.is(Kind::String)) return otherwise;
  if (auto whole = parsed_int(call.value.text(), call.rendering)) return *std::move(whole);
  const auto real = parsed_float(call.value.text());
  return real ? cut(*real, call.rendering).value_or(otherwise) : otherwise;
}

Value float_filter(const Call& call) {
  const Bound bound = call.bind({"default"});
  require_defined(call.value, call.rendering);
  const Value otherwise = bound.has(0) ? bound.value(0) : Value::of(0.0);
  if (call.value.is_number()) return Value::of(call.value.real());
  const auto real = call.value.is(Kind::String) ? parsed_float(call.value.text()) : std::nullopt;
  return real ? Value::of(*real) : otherwise;
}

Value abs_filter(const Call& call) {
  call.takes_nothing();
  if (call.value.is(Kind::Float)) return Value::of(std::abs(call.value.real()));
  if (call.value.is_whole() && call.value.whole() >= 0) return Value::of(call.value.whole());
  return negated(call.value, call.rendering);
}

Value round_filter(const Call& call) {
  const Bound bound = call.bind({"precision", "method"});
  const int64_t precision = bound.whole(0, 0);
  const std::string method = bound.has(1) ? bound.text(1) : "common";
  require_defined(call.value, call.rendering);
  if (!call.value.is_number()) call.rendering.fail("the filter 'round' takes a number");
  if (precision < 0 || precision > 300) call.rendering.refuse("the filter 'round' with such a precision");
  if (method == "common") {
    if (call.value.is_whole()) return Value::of(call.value.whole());
    return Value::of(std::strtod(fmt::format("{:.{}f}", call.value.real(), precision).c_str(), nullptr));
  }
  if (method != "ceil" && method != "floor")
    call.rendering.fail("the filter 'round': method must be common, ceil or floor");
  const double scale = std::pow(10.0, static_cast<double>(precision)), scaled = call.value.real() * scale;
  return Value::of((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

// Lists

Value first_filter(const Call& call) {
  call.takes_nothing();
  if (call.value.is(Kind::Iterator)) {
    Walk& walk = call.value.walk();
    if (walk.next < walk.sequence->items.size()) return walk.sequence->items[walk.next++];
    if (!walk.fault.empty()) throw InputError(walk.fault);
    return Value::undefined("there is no first item: the sequence is empty");
  }
  const Values items = call.elements();
  return items.empty() ? Value::undefined("there is no first item: the sequence is empty") : items.front();
}

Value last_filter(const Call& call) {
  call.takes_nothing();
  if (call.value.is(Kind::Iterator)) call.rendering.fail("the filter 'last' needs a list; |list makes one");
  const Values items = call.elements();
  return items.empty() ? Value::undefined("there is no last item: the sequence is empty") : items.back();
}

Value default_filter(const Call& call) {
  const Bound bound = call.bind({"default_value", "boolean"});
  const bool is_replaced = call.value.is(Kind::Undefined) || (bound.flag(1) && !truth(call.value));
  if (!is_replaced) return call.value;
  return bound.has(0) ? bound.value(0) : Value::of(std::string());
}

Value items_filter(const Call& call) {
  call.takes_nothing();
  return generated(call, [&](Values& items) {
    if (call.value.is(Kind::Undefined)) return;
    if (!call.value.is(Kind::Dict)) call.rendering.fail("the filter 'items' takes a dict");
    items = elements_of(call_method(call.value, "items", {}, call.rendering), call.rendering);
  });
}

/// Stable, and the elements of equal keys keep their order also where it is reversed, as in Python.
Values sorted(std::vector<std::pair<Value, Value>> by_key, bool is_reversed, Rendering& rendering) {
  std::ranges::stable_sort(by_key, [&](const auto& a, const auto& b) {
    return is_reversed ? less(b.first, a.first, rendering) : less(a.first, b.first, rendering);
  });
  Values items;
  for (auto& [key, item] : by_key) items.push_back(std::move(item));
  return items;
}

Value dictsort_filter(const Call& call) {
  const Bound bound = call.bind({"case_sensitive", "by", "reverse"});
  require_defined(call.value, call.rendering);
  if (!call.value.is(Kind::Dict)) call.rendering.fail("the filter 'dictsort' takes a dict");
  const std::string by = bound.has(1) ? bound.text(1) : "key";
  if (by != "key" && by != "value") call.rendering.fail("the filter 'dictsort' sorts by key or value");
  std::vector<std::pair<Value, Value>> by_key;
  for (const auto& [key, value] : call.value.dict().entries)
    by_key.emplace_back(without_case(by == "key" ? key : value, bound.flag(0), call.rendering),
                        call.list({key, value}, Kind::Tuple));
  return call.list(sorted(std::move(by_key), bound.whole_flag(2), call.rendering));
}

Value sort_filter(const Call& call) {
  const Bound bound = call.bind({"reverse", "case_sensitive", "attribute"});
  std::vector<std::pair<Value, Value>> by_key;
  for (const Value& item : call.elements()) {
    Values keys;
    std::string paths = bound.value(2).is(Kind::String) ? bound.text(2) : "";
    if (paths.empty())
      keys.push_back(
          without_case(looked_up(item, bound.value(2), Value::none(), call.rendering), bound.flag(1), call.rendering));
    while (!paths.empty()) {
      const size_t comma = std::min(paths.find(','), paths.size());
      const Value found = looked_up(item, Value::of(paths.substr(0, comma)), Value::none(), call.rendering);
      keys.push_back(without_case(found, bound.flag(1), call.rendering));
      paths.erase(0, comma + 1);
    }
    by_key.emplace_back(call.list(std::move(keys)), item);
  }
  return call.list(sorted(std::move(by_key), bound.whole_flag(0), call.rendering));
}

Value unique_filter(const Call& call) {
  const Bound bound = call.bind({"case_sensitive", "attribute"});
  return generated(call, [&](Values& items) {
    Dict seen;
    for (const Value& item : call.elements()) {
      const Value found = looked_up(item, bound.value(1), Value::none(), call.rendering);
      const Value key = without_case(found, bound.flag(0), call.rendering);
      if (seen.find(key, call.rendering)) continue;
      seen.set(key, Value::none(), call.rendering);
      items.push_back(item);
    }
  });
}

Value reverse_filter(const Call& call) {
  call.takes_nothing();
  if (call.value.is_markup()) call.rendering.refuse("'reverse' of what |safe or |escape made");
  Values items = call.elements();
  std::ranges::reverse(items);
  if (!call.value.is(Kind::String))
    return call.list(std::move(items), call.value.is(Kind::Iterator) ? Kind::List : Kind::Iterator);
  std::string text;
  for (const Value& item : items) text += item.text();
  return Value::of(std::move(text));
}

/// The arguments behind the first `count`.
Arguments behind(const Arguments& given, size_t count) {
  return {Values(given.positional.begin() + static_cast<std::ptrdiff_t>(count), given.positional.end()), given.named};
}

const std::string& name_in(const Call& call, size_t index) {
  const Value& name = call.given.positional[index];
  if (!name.is(Kind::String)) call.rendering.fail(fmt::format("the filter '{}' takes names as texts", call.name));
  return name.text();
}

Value map_filter(const Call& call) {
  return generated(call, [&](Values& items) {
    if (!truth(call.value)) return;
    if (call.given.positional.empty()) {
      const Bound bound = call.bind({"attribute", "default"});
      for (const Value& item : call.elements())
        items.push_back(looked_up(item, bound.required(0), bound.value(1), call.rendering));
      return;
    }
    const Arguments rest = behind(call.given, 1);
    for (const Value& item : call.elements())
      items.push_back(apply_filter(name_in(call, 0), item, rest, call.rendering));
  });
}

/// select, reject, selectattr and rejectattr.
Value selected(const Call& call, bool by_attribute, bool wanted) {
  return generated(call, [&](Values& items) {
    if (!truth(call.value)) return;
    const size_t skipped = by_attribute ? 1 : 0;
    if (call.given.positional.size() < skipped)
      call.rendering.fail(fmt::format("the filter '{}' lacks the name of the attribute", call.name));
    const bool has_test = call.given.positional.size() > skipped;
    const Arguments rest = has_test ? behind(call.given, skipped + 1) : Arguments();
    for (const Value& item : call.elements()) {
      const Value asked =
          by_attribute ? looked_up(item, call.given.positional[0], Value::none(), call.rendering) : item;
      const bool passes = has_test ? passes_test(name_in(call, skipped), asked, rest, call.rendering) : truth(asked);
      if (passes == wanted) items.push_back(item);
    }
  });
}

Value sum_filter(const Call& call) {
  const Bound bound = call.bind({"attribute", "start"});
  Value sum = bound.has(1) ? bound.value(1) : Value::of(int64_t{0});
  if (sum.is(Kind::String)) call.rendering.fail("the filter 'sum' does not start with a text; join joins texts");
  for (const Value& item : call.elements())
    sum = calculate("+", sum, looked_up(item, bound.value(0), Value::none(), call.rendering), call.rendering);
  return sum;
}

Value extreme(const Call& call, bool is_least) {
  const Bound bound = call.bind({"case_sensitive", "attribute"});
  Value best, best_key;
  bool is_first = true;
  for (const Value& item : call.elements()) {
    const Value key =
        without_case(looked_up(item, bound.value(1), Value::none(), call.rendering), bound.flag(0), call.rendering);
    const bool is_better =
        is_first || (is_least ? less(key, best_key, call.rendering) : less(best_key, key, call.rendering));
    if (is_better) best = item, best_key = key;
    is_first = false;
  }
  return is_first ? Value::undefined("there is no such item: the sequence is empty") : best;
}

using Apply = Value (*)(const Call& call);
struct NamedFilter {
  const char* name;
  Apply apply;
};

Value length_filter(const Call& call) {
  call.takes_nothing();
  return Value::of(size_of(call.value, call.rendering));
}

constexpr std::array kFilters{
    NamedFilter{"trim", trim_filter},
    NamedFilter{"lower",
                [](const Call& call) { return call.takes_nothing(), Value::of(lower(call.text(), call.rendering)); }},
    NamedFilter{"upper",
                [](const Call& call) { return call.takes_nothing(), Value::of(upper(call.text(), call.rendering)); }},
    NamedFilter{"title", title_filter},
    NamedFilter{
        "capitalize",
        [](const Call& call) { return call.takes_nothing(), Value::of(capitalized(call.text(), call.rendering)); }},
    NamedFilter{"length", length_filter},
    NamedFilter{"count", length_filter},
    NamedFilter{"join", join_filter},
    NamedFilter{"first", first_filter},
    NamedFilter{"last", last_filter},
    NamedFilter{"default", default_filter},
    NamedFilter{"d", default_filter},
    NamedFilter{"tojson", tojson_filter},
    NamedFilter{"string",
                [](const Call& call) {
                  return call.takes_nothing(), call.value.is_markup() ? call.value : Value::of(call.text());
                }},
    NamedFilter{"int", int_filter},
    NamedFilter{"float", float_filter},
    NamedFilter{"list", [](const Call& call) { return call.takes_nothing(), call.list(call.elements()); }},
    NamedFilter{"items", items_filter},
    NamedFilter{"dictsort", dictsort_filter},
    NamedFilter{"replace", replace_filter},
    NamedFilter{"map", map_filter},
    NamedFilter{"select", [](const Call& call) { return selected(call, false, true); }},
    NamedFilter{"reject", [](const Call& call) { return selected(call, false, false); }},
    NamedFilter{"selectattr", [](const Call& call) { return selected(call, true, true); }},
    NamedFilter{"rejectattr", [](const Call& call) { return selected(call, true, false); }},
    NamedFilter{"sort", sort_filter},
    NamedFilter{"reverse", reverse_filter},
    NamedFilter{"unique", unique_filter},
    NamedFilter{"round", round_filter},
    NamedFilter{"abs", abs_filter},
    NamedFilter{"indent", indent_filter},
    NamedFilter{"safe", safe_filter},
    NamedFilter{"escape", escape_filter},
    NamedFilter{"e", escape_filter},
    NamedFilter{"sum", sum_filter},
    NamedFilter{"min", [](const Call& call) { return extreme(call, true); }},
    NamedFilter{"max", [](const Call& call) { return extreme(call, false); }},
};

bool takes_markup(const std::string& name) {
  constexpr std::array kNames{"safe", "escape", "e", "string", "length", "count", "default", "d", "tojson", "list"};
  return std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace

Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments, Rendering& rendering) {
  rendering.step();
  const auto* const found = std::ranges::find_if(kFilters, [&](const auto& filter) { return name == filter.name; });
  if (found == kFilters.end()) rendering.refuse("the filter '" + name + "'");
  if (value.is_markup() && !takes_markup(name))
    rendering.refuse(fmt::format("'{}' of what |safe or |escape made", name));
  return found->apply({name, value, arguments, rendering});
}

}  // namespace trainyard::chat
