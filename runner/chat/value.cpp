#include "chat/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace trainyard::chat {
namespace {

constexpr size_t kMaxDepth = 700;

bool equal_items(const Values& a, const Values& b, Rendering& rendering) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!equal(a[i], b[i], rendering)) return false;
  return true;
}

bool equal_dicts(const Dict& a, const Dict& b, Rendering& rendering) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::ranges::all_of(a.entries, [&](const auto& entry) {
    const Value* const other = b.find(entry.first, rendering);
    return other && equal(entry.second, *other, rendering);
  });
}

bool equal_numbers(const Value& a, const Value& b) {
  if (a.is_whole() && b.is_whole()) return a.whole() == b.whole();
  return a.real() == b.real();
}

void require_shallow(size_t depth, const Rendering& rendering) {
  if (depth > kMaxDepth) rendering.fail(fmt::format("lists stand more than {} deep within one another", kMaxDepth));
}

}  // namespace

Value Value::sequence(Kind kind, Values items, Rendering& rendering, std::string name) {
  rendering.make(sizeof(Sequence) + items.size() * sizeof(Value));
  size_t depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  require_shallow(depth + 1, rendering);
  auto held = std::make_shared<const Sequence>(Sequence{std::move(items), depth + 1, std::move(name)});
  if (kind == Kind::Iterator) return {kind, std::make_shared<Walk>(Walk{std::move(held)})};
  return {kind, std::move(held)};
}

Value Value::as_markup() const {
  Value value = *this;
  value.is_markup_ = true;
  return value;
}

const Sequence& Value::items_of_sequence() const {
  if (kind_ == Kind::Iterator) return *walk().sequence;
  return *std::get<std::shared_ptr<const Sequence>>(held_);
}

std::string Value::why() const {
  const auto* const text = std::get_if<std::shared_ptr<const std::string>>(&held_);
  return text ? **text : "a value is undefined";
}

size_t Value::depth() const {
  switch (kind_) {
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
    case Kind::View:
    case Kind::Iterator:
      return items_of_sequence().depth;
    case Kind::Dict:
      return dict().depth;
    case Kind::Callable:
      return callable().self ? callable().self->depth() + 1 : 1;
    default:
      return 0;
  }
}

void Dict::set(Value key, Value value, Rendering& rendering) {
  if (!has_hash(key)) rendering.fail(fmt::format("a value of the type {} is no key of a dict", type_name(key)));
  rendering.make(2 * sizeof(Value));
  depth = std::max({depth, key.depth() + 1, value.depth() + 1});
  require_shallow(depth, rendering);
  if (const Value* const there = find(key, rendering)) {
    *const_cast<Value*>(there) = std::move(value);  // of this very object, which is not const
    return;
  }
  if (key.is(Kind::String)) by_text.emplace(key.text(), entries.size());
  entries.emplace_back(std::move(key), std::move(value));
}

const Value* Dict::find(const Value& key, Rendering& rendering) const {
  if (key.is(Kind::String)) return find(key.text());
  if (!has_hash(key)) rendering.fail(fmt::format("a value of the type {} is no key of a dict", type_name(key)));
  if (by_text.size() == entries.size()) return nullptr;
  rendering.step(entries.size());
  const auto found =
      std::ranges::find_if(entries, [&](const auto& entry) { return equal(entry.first, key, rendering); });
  return found == entries.end() ? nullptr : &found->second;
}

const Value* Dict::find(const std::string& key) const {
  const auto found = by_text.find(key);
  return found == by_text.end() ? nullptr : &entries[found->second].second;
}

std::string_view type_name(const Value& value) {
  constexpr std::array<std::string_view, 15> kNames{"Undefined", "NoneType", "bool",      "int",         "float",
                                                    "str",       "list",     "tuple",     "range",       "dict_view",
                                                    "generator", "dict",     "Namespace", "LoopContext", "function"};
  return kNames.at(static_cast<size_t>(value.kind()));
}

Value from_json(const nlohmann::ordered_json& json, Rendering& rendering) {
  if (json.is_null()) return Value::none();
  if (json.is_boolean()) return Value::of(json.get<bool>());
  if (json.is_number_float()) return Value::of(json.get<double>());
  if (json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX)
    rendering.refuse(fmt::format("the whole number {}, which is beyond 64 bits,", json.dump()));
  if (json.is_number_integer()) return Value::of(json.get<int64_t>());
  if (json.is_string())
    return rendering.make_text(json.get_ref<const std::string&>().size()), Value::of(json.get<std::string>());
  if (json.is_array()) {
    Values items;
    for (const auto& element : json) items.push_back(from_json(element, rendering));
    return Value::sequence(Kind::List, std::move(items), rendering);
  }
  Dict dict;
  for (const auto& [key, value] : json.items())
    dict.set(Value::of(std::string(key)), from_json(value, rendering), rendering);
  return Value::of(std::make_shared<const Dict>(std::move(dict)));
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::Undefined:
    case Kind::None:
      return false;
    case Kind::Bool:
    case Kind::Int:
      return value.whole() != 0;
    case Kind::Float:
      return value.real() != 0;
    case Kind::String:
      return !value.text().empty();
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
    case Kind::View:
      return !value.items_of_sequence().items.empty();
    case Kind::Dict:
      return !value.dict().entries.empty();
    default:
      return true;
  }
}

bool equal(const Value& a, const Value& b, Rendering& rendering) {
  rendering.step();
  if (a.is_number() && b.is_number()) return equal_numbers(a, b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::Undefined:
    case Kind::None:
      return true;
    case Kind::String:
      return a.text() == b.text();
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
      return equal_items(a.items_of_sequence().items, b.items_of_sequence().items, rendering);
    case Kind::Dict:
      return equal_dicts(a.dict(), b.dict(), rendering);
    case Kind::Namespace:
      return &a.ns() == &b.ns();
    case Kind::Loop:
      return &a.loop() == &b.loop();
    default:
      rendering.refuse(fmt::format("the comparison of two values of the type {}", type_name(a)));
  }
}

bool has_hash(const Value& value) {
  if (value.is(Kind::Tuple)) return std::ranges::all_of(value.items_of_sequence().items, has_hash);
  return !value.is(Kind::List) && !value.is(Kind::Dict) && !value.is(Kind::View);
}

void require_defined(const Value& value, Rendering& rendering) {
  if (value.is(Kind::Undefined)) rendering.fail(value.why());
}

}  // namespace trainyard::chat
