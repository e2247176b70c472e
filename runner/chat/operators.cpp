#include "chat/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "chat/letters.h"

namespace trainyard::chat {
namespace {

[[noreturn]] void refuse_operands(std::string_view op, const Value& a, const Value& b, Rendering& rendering) {
  require_defined(a, rendering);
  require_defined(b, rendering);
  rendering.fail(fmt::format("'{}' does not go with the types {} and {}", op, type_name(a), type_name(b)));
}

[[noreturn]] void refuse_large(std::string_view op, Rendering& rendering) {
  rendering.refuse(fmt::format("'{}' with a result beyond 64 bits", op));
}

[[noreturn]] void refuse_zero(Rendering& rendering) {
  rendering.fail("division by zero");
}

int64_t floor_divided(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

double floor_modulo(double a, double b) {
  double r = std::fmod(a, b);
  if (r != 0 && (r < 0) != (b < 0)) r += b;
  return r == 0 ? std::copysign(0.0, b) : r;
}

double floor_quotient(double a, double b) {
  const double q = (a - floor_modulo(a, b)) / b;
  if (q == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(q);
  return q - floored > 0.5 ? floored + 1 : floored;
}

Value power(int64_t base, int64_t exponent, Rendering& rendering) {
  if (exponent < 0) {
    if (base == 0) refuse_zero(rendering);
    return Value::of(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  if (base == 0 || base == 1) return Value::of(exponent == 0 ? int64_t{1} : base);
  if (base == -1) return Value::of(int64_t{exponent % 2 == 0 ? 1 : -1});
  for (int64_t i = 0; i < exponent; ++i)
    if (__builtin_mul_overflow(result, base, &result)) refuse_large("**", rendering);
  return Value::of(result);
}

Value of_wholes(std::string_view op, int64_t a, int64_t b, Rendering& rendering) {
  int64_t result = 0;
  bool is_large = false;
  if (op == "+") {
    is_large = __builtin_add_overflow(a, b, &result);
  } else if (op == "-") {
    is_large = __builtin_sub_overflow(a, b, &result);
  } else if (op == "*") {
    is_large = __builtin_mul_overflow(a, b, &result);
  } else if (op == "**") {
    return power(a, b, rendering);
  } else {
    if (b == 0) refuse_zero(rendering);
    if (op == "/") return Value::of(static_cast<double>(a) / static_cast<double>(b));
    is_large = b == -1 && a == std::numeric_limits<int64_t>::min();
    if (!is_large) result = op == "//" ? floor_divided(a, b) : a - floor_divided(a, b) * b;
  }
  if (is_large) refuse_large(op, rendering);
  return Value::of(result);
}

Value of_reals(std::string_view op, double a, double b, Rendering& rendering) {
  if (op == "+") return Value::of(a + b);
  if (op == "-") return Value::of(a - b);
  if (op == "*") return Value::of(a * b);
  if (op == "**") {
    const double result = std::pow(a, b);
    if (a == 0 && b < 0) refuse_zero(rendering);
    if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) rendering.refuse("a power that is complex");
    if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) rendering.fail("the result of '**' is too large");
    return Value::of(result);
  }
  if (b == 0) refuse_zero(rendering);
  if (op == "/") return Value::of(a / b);
  return Value::of(op == "//" ? floor_quotient(a, b) : floor_modulo(a, b));
}

Value repeated(const Value& value, int64_t times, Rendering& rendering) {
  const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  const size_t unit = value.is(Kind::String) ? value.text().size() : value.items_of_sequence().items.size();
  constexpr size_t kMost = size_t{1} << 40;
  if (unit > 0 && count > kMost / unit) rendering.make(kMost);
  if (value.is(Kind::String)) {
    rendering.make_text(unit * count);
    std::string text;
    text.reserve(unit * count);
    for (size_t i = 0; i < count && unit > 0; ++i) text += value.text();
    return Value::of(std::move(text));
  }
  rendering.make(unit * count * sizeof(Value));
  Values items;
  const Values& all = value.items_of_sequence().items;
  for (size_t i = 0; i < count && unit > 0; ++i) items.insert(items.end(), all.begin(), all.end());
  return Value::sequence(value.kind(), std::move(items), rendering);
}

bool is_list_or_tuple(const Value& value) {
  return value.is(Kind::List) || value.is(Kind::Tuple);
}

Value added(const Value& a, const Value& b, Rendering& rendering) {
  if (a.is(Kind::String) && b.is(Kind::String)) {
    rendering.make_text(a.text().size() + b.text().size());
    return Value::of(a.text() + b.text());
  }
  if (!is_list_or_tuple(a) || a.kind() != b.kind()) refuse_operands("+", a, b, rendering);
  Values items = a.items_of_sequence().items;
  const Values& more = b.items_of_sequence().items;
  items.insert(items.end(), more.begin(), more.end());
  return Value::sequence(a.kind(), std::move(items), rendering);
}

bool less_items(const Values& a, const Values& b, Rendering& rendering) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    if (!equal(a[i], b[i], rendering)) return less(a[i], b[i], rendering);
  return a.size() < b.size();
}

bool is_at_most(const Value& a, const Value& b, Rendering& rendering) {
  if (a.is_number() && b.is_number() && !(a.is_whole() && b.is_whole())) return a.real() <= b.real();
  return less(a, b, rendering) || equal(a, b, rendering);
}

/// A bound of a slice as Python clips it, for `size` elements.
int64_t bound(const Value& given, int64_t otherwise, int64_t size, bool is_backwards, Rendering& rendering) {
  if (given.is(Kind::None)) return otherwise;
  require_defined(given, rendering);
  if (!given.is_whole()) rendering.fail(fmt::format("a slice has a bound of the type {}", type_name(given)));
  int64_t value = given.whole();
  const int64_t lowest = is_backwards ? -1 : 0, highest = is_backwards ? size - 1 : size;
  if (value < 0) value = value < -size ? lowest : std::max(value + size, lowest);
  return std::min(value, highest);
}

}  // namespace

Value calculate(std::string_view op, const Value& a, const Value& b, Rendering& rendering) {
  if (a.is_markup() || b.is_markup()) rendering.refuse(fmt::format("'{}' of what |safe or |escape made", op));
  if (a.is_whole() && b.is_whole()) return of_wholes(op, a.whole(), b.whole(), rendering);
  if (a.is_number() && b.is_number()) return of_reals(op, a.real(), b.real(), rendering);
  if (op == "+") return added(a, b, rendering);
  if (op == "%" && a.is(Kind::String)) rendering.refuse("'%' that fills a text");
  const bool a_repeats = a.is(Kind::String) || is_list_or_tuple(a),
             b_repeats = b.is(Kind::String) || is_list_or_tuple(b);
  if (op == "*" && a_repeats && b.is_whole()) return repeated(a, b.whole(), rendering);
  if (op == "*" && b_repeats && a.is_whole()) return repeated(b, a.whole(), rendering);
  if (op == "-" && a.is(Kind::View) && b.is(Kind::View)) rendering.refuse("'-' of views of dicts");
  refuse_operands(op, a, b, rendering);
}

Value negated(const Value& value, Rendering& rendering) {
  if (value.is_whole()) return of_wholes("-", 0, value.whole(), rendering);
  if (value.is(Kind::Float)) return Value::of(-value.real());
  require_defined(value, rendering);
  rendering.fail(fmt::format("a sign does not go with the type {}", type_name(value)));
}

bool less(const Value& a, const Value& b, Rendering& rendering) {
  rendering.step();
  if (a.is_whole() && b.is_whole()) return a.whole() < b.whole();
  if (a.is_number() && b.is_number()) return a.real() < b.real();
  if (a.is(Kind::String) && b.is(Kind::String)) return a.text() < b.text();  // UTF-8 has the order of the characters
  if (is_list_or_tuple(a) && a.kind() == b.kind())
    return less_items(a.items_of_sequence().items, b.items_of_sequence().items, rendering);
  refuse_operands("<", a, b, rendering);
}

bool compare(std::string_view op, const Value& a, const Value& b, Rendering& rendering) {
  if (op == "==") return equal(a, b, rendering);
  if (op == "!=") return !equal(a, b, rendering);
  if (op == "<") return less(a, b, rendering);
  if (op == ">") return less(b, a, rendering);
  if (op == "<=") return is_at_most(a, b, rendering);
  if (op == ">=") return is_at_most(b, a, rendering);
  const bool is_in = contains(b, a, rendering);
  return op == "in" ? is_in : !is_in;
}

bool contains(const Value& container, const Value& item, Rendering& rendering) {
  switch (container.kind()) {
    case Kind::String:
      require_defined(item, rendering);
      if (!item.is(Kind::String))
        rendering.fail(fmt::format("'in' asks a text for a value of the type {}", type_name(item)));
      rendering.look_through(container.text().size());
      return container.text().find(item.text()) != std::string::npos;
    case Kind::Dict:
      return container.dict().find(item, rendering) != nullptr;
    case Kind::Iterator:
      rendering.refuse("'in' of what map, select and their like give, without |list,");
    default: {
      const Values elements = elements_of(container, rendering);
      return std::ranges::any_of(elements, [&](const Value& element) { return equal(element, item, rendering); });
    }
  }
}

Values elements_of(const Value& value, Rendering& rendering) {
  Values items;
  switch (value.kind()) {
    case Kind::Undefined:
      return {};
    case Kind::String:
      rendering.make(value.text().size() * sizeof(Value));
      for (std::string& character : characters_of(value.text())) items.push_back(Value::of(std::move(character)));
      break;
    case Kind::Dict:
      for (const auto& entry : value.dict().entries) items.push_back(entry.first);
      break;
    case Kind::Iterator: {
      Walk& walk = value.walk();
      const Values& all = walk.sequence->items;
      items.assign(all.begin() + static_cast<std::ptrdiff_t>(walk.next), all.end());
      walk.next = all.size();
      if (!walk.fault.empty()) throw InputError(walk.fault);
      break;
    }
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
    case Kind::View:
      items = value.items_of_sequence().items;
      break;
    case Kind::Loop:
      rendering.refuse("a walk over `loop`");
    default:
      rendering.fail(fmt::format("a value of the type {} has no elements to walk over", type_name(value)));
  }
  rendering.step(items.size());
  rendering.make(items.size() * sizeof(Value));
  return items;
}

int64_t size_of(const Value& value, Rendering& rendering) {
  switch (value.kind()) {
    case Kind::Undefined:
      return 0;
    case Kind::String:
      rendering.look_through(value.text().size());
      return static_cast<int64_t>(length_of(value.text()));
    case Kind::Dict:
      return static_cast<int64_t>(value.dict().entries.size());
    case Kind::Loop:
      return static_cast<int64_t>(value.loop().items.size());
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
    case Kind::View:
      return static_cast<int64_t>(value.items_of_sequence().items.size());
    default:
      rendering.fail(fmt::format("a value of the type {} has no length{}", type_name(value),
                                 value.is(Kind::Iterator) ? "; |list makes a list of it" : ""));
  }
}

Value sliced(const Value& value, const Slice& slice, Rendering& rendering) {
  if (!value.is(Kind::String) && !is_list_or_tuple(value)) {
    require_defined(value, rendering);
    if (value.is(Kind::Range)) rendering.refuse("a slice of a range");
    rendering.fail(fmt::format("a value of the type {} has no slices", type_name(value)));
  }
  if (value.is_markup()) rendering.refuse("a slice of what |safe or |escape made");
  const int64_t size = size_of(value, rendering);
  const int64_t step = slice.step.is(Kind::None) ? 1 : bound(slice.step, 1, int64_t{1} << 40, false, rendering);
  if (!slice.step.is(Kind::None) && slice.step.whole() == 0) rendering.fail("a slice has the step 0");
  const bool is_backwards = !slice.step.is(Kind::None) && slice.step.whole() < 0;
  const int64_t stride = is_backwards ? std::max(slice.step.whole(), -size - 1) : std::min(step, size + 1);
  int64_t at = bound(slice.begin, is_backwards ? size - 1 : 0, size, is_backwards, rendering);
  const int64_t end = bound(slice.end, is_backwards ? -1 : size, size, is_backwards, rendering);
  const Values all = elements_of(value, rendering);
  Values items;
  for (; is_backwards ? at > end : at < end; at += stride) items.push_back(all[static_cast<size_t>(at)]);
  if (!value.is(Kind::String)) return Value::sequence(value.kind(), std::move(items), rendering);
  std::string text;
  for (const Value& item : items) text += item.text();
  return Value::of(std::move(text));
}

}  // namespace trainyard::chat
