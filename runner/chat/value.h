#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "chat/rendering.h"

namespace trainyard::chat {

enum class Kind {
  Undefined,
  None,
  Bool,
  Int,
  Float,
  String,
  List,
  Tuple,
  Range,
  View,      ///< what a dict's keys(), values() and items() give
  Iterator,  ///< what map, select and their like give: it can be walked over once
  Dict,
  Namespace,
  Loop,
  Callable
};

class Value;
using Values = std::vector<Value>;

struct Sequence {
  Values items;
  size_t depth = 1;    ///< containers within one another, this one among them
  std::string name{};  ///< of a view "dict_keys", of a range what it prints
};

/// What an iterator has left.
struct Walk {
  std::shared_ptr<const Sequence> sequence;
  size_t next = 0;
  std::string fault{};  ///< what is thrown behind the last element; "": nothing
};

struct Dict;
struct Namespace;
struct LoopState;
struct Callable;

/// A value as Python has it. Immutable but for namespaces and iterators, so that copies share what they hold.
/// Namespaces and the scopes of macros belong to the evaluator, which outlives every value.
class Value {
 public:
  Value() : Value(Kind::Undefined, std::monostate()) {}
  static Value undefined(std::string why) {
    return {Kind::Undefined, std::make_shared<const std::string>(std::move(why))};
  }
  static Value none() { return {Kind::None, std::monostate()}; }
  static Value of(bool value) { return {Kind::Bool, value}; }
  static Value of(int64_t value) { return {Kind::Int, value}; }
  static Value of(double value) { return {Kind::Float, value}; }
  static Value of(std::string text) { return {Kind::String, std::make_shared<const std::string>(std::move(text))}; }
  static Value of(const char*) = delete;
  static Value of(std::shared_ptr<const Dict> dict) { return {Kind::Dict, std::move(dict)}; }
  static Value of(Namespace* ns) { return {Kind::Namespace, ns}; }
  static Value of(std::shared_ptr<const LoopState> loop) { return {Kind::Loop, std::move(loop)}; }
  static Value of(std::shared_ptr<const Callable> callable) { return {Kind::Callable, std::move(callable)}; }
  /// A list, tuple, range, view or iterator. Counts what it holds against the limits.
  static Value sequence(Kind kind, Values items, Rendering& rendering, std::string name = "");

  /// A text that |safe or |escape made: Jinja2's Markup, of which only what prints it is offered.
  [[nodiscard]] Value as_markup() const;
  [[nodiscard]] bool is_markup() const { return is_markup_; }

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] bool is(Kind kind) const { return kind_ == kind; }
  /// A bool is a number, as in Python.
  [[nodiscard]] bool is_whole() const { return kind_ == Kind::Int || kind_ == Kind::Bool; }
  [[nodiscard]] bool is_number() const { return is_whole() || kind_ == Kind::Float; }

  // Each may be asked only of its kind.
  [[nodiscard]] bool flag() const { return std::get<bool>(held_); }
  [[nodiscard]] int64_t whole() const { return kind_ == Kind::Bool ? int64_t{flag()} : std::get<int64_t>(held_); }
  [[nodiscard]] double real() const { return is_whole() ? static_cast<double>(whole()) : std::get<double>(held_); }
  [[nodiscard]] const std::string& text() const { return *std::get<std::shared_ptr<const std::string>>(held_); }
  [[nodiscard]] const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(held_); }
  [[nodiscard]] Namespace& ns() const { return *std::get<Namespace*>(held_); }
  [[nodiscard]] const LoopState& loop() const { return *loop_pointer(); }
  [[nodiscard]] const std::shared_ptr<const LoopState>& loop_pointer() const {
    return std::get<std::shared_ptr<const LoopState>>(held_);
  }
  [[nodiscard]] const Callable& callable() const { return *std::get<std::shared_ptr<const Callable>>(held_); }
  [[nodiscard]] const Sequence& items_of_sequence() const;
  [[nodiscard]] Walk& walk() const { return *std::get<std::shared_ptr<Walk>>(held_); }
  /// What is wrong with what is undefined: "'x' is undefined".
  [[nodiscard]] std::string why() const;
  [[nodiscard]] size_t depth() const;

 private:
  using Held = std::variant<std::monostate, bool, int64_t, double, std::shared_ptr<const std::string>,
                            std::shared_ptr<const Sequence>, std::shared_ptr<Walk>, std::shared_ptr<const Dict>,
                            Namespace*, std::shared_ptr<const LoopState>, std::shared_ptr<const Callable>>;
  Value(Kind kind, Held held) : kind_(kind), held_(std::move(held)) {}

  Kind kind_;
  bool is_markup_ = false;
  Held held_;
};

/// The entries stand in the order in which their keys came.
struct Dict {
  std::vector<std::pair<Value, Value>> entries{};
  std::unordered_map<std::string, size_t> by_text{};  ///< where the entry of a key that is a text is
  size_t depth = 1;

  /// Throws InputError for a key that has no hash.
  void set(Value key, Value value, Rendering& rendering);
  [[nodiscard]] const Value* find(const Value& key, Rendering& rendering) const;
  [[nodiscard]] const Value* find(const std::string& key) const;
};

struct Namespace {
  Dict attributes;
};

/// What `loop` stands for.
struct LoopState {
  Values items;
  size_t index = 0;
};

struct MacroNode;
struct Scope;

/// A function of Jinja2's, a method of `self`, or a macro with the scope that it was made in.
struct Callable {
  std::string name;
  std::optional<Value> self{};
  const MacroNode* macro = nullptr;
  Scope* scope = nullptr;
};

/// "int", "str", as Python names types.
std::string_view type_name(const Value& value);

/// Objects keep the order of their keys. Throws InputError for whole numbers beyond 64 bits.
Value from_json(const nlohmann::ordered_json& json, Rendering& rendering);

// These do as Python's bool(), == and hash().
bool truth(const Value& value);
bool equal(const Value& a, const Value& b, Rendering& rendering);
bool has_hash(const Value& value);

/// Throws InputError, with why it is undefined, where it is that.
void require_defined(const Value& value, Rendering& rendering);

}  // namespace trainyard::chat
