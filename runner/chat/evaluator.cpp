#include "chat/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "base/error.h"
#include "chat/arguments.h"
#include "chat/filters.h"
#include "chat/methods.h"
#include "chat/operators.h"
#include "chat/printing.h"
#include "chat/tests.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::chat {

struct Scope {
  Scope* parent = nullptr;
  std::unordered_map<std::string, Value> values{};
  bool is_kept = false;  ///< a macro was made in it, or below it
};

namespace {

constexpr std::array kFunctions{"range", "dict", "namespace", "raise_exception", "strftime_now"};
constexpr std::array kOtherNames{"lipsum", "cycler", "joiner", "self"};
constexpr int64_t kMaxRange = 100'000;  // as Jinja2's sandbox

enum class Flow { Next, Break, Continue };

class Evaluator {
 public:
  Evaluator(const std::string& name, const nlohmann::ordered_json& variables, const Settings& settings)
      : settings_(settings), rendering_(name, settings.limits) {
    for (const auto& [key, value] : variables.items()) variables_.emplace(key, from_json(value, rendering_));
  }

  Rendered run(const Body& body) {
    const ScopeFrame top(*this, nullptr);
    static_cast<void>(run_body(body, top.scope()));
    return {std::move(main_), std::move(generated_)};
  }

 private:
  /// A scope for as long as it lives, or as the evaluator does where a macro may come back to it.
  class ScopeFrame {
   public:
    ScopeFrame(Evaluator& evaluator, Scope* parent)
        : evaluator_(evaluator), scope_(std::make_unique<Scope>(Scope{.parent = parent})) {}
    ~ScopeFrame() {
      if (scope_->is_kept) evaluator_.kept_.push_back(std::move(scope_));
    }
    ScopeFrame(const ScopeFrame&) = delete;
    ScopeFrame& operator=(const ScopeFrame&) = delete;
    [[nodiscard]] Scope& scope() const { return *scope_; }

   private:
    Evaluator& evaluator_;
    std::unique_ptr<Scope> scope_;
  };

  void put(std::string_view text) {
    rendering_.make(text.size());
    rendering_.require_size_of_text(out_->size() + text.size());
    out_->append(text);
  }

  /// What `body` prints, in a scope of its own.
  std::string captured(const Body& body, Scope& scope) {
    const ScopeFrame frame(*this, &scope);
    return captured_in(body, frame.scope());
  }

  std::string captured_in(const Body& body, Scope& scope) {
    std::string text;
    std::string* const before = std::exchange(out_, &text);
    try {
      static_cast<void>(run_body(body, scope));
    } catch (...) {
      out_ = before;
      throw;
    }
    out_ = before;
    return text;
  }

  // Statements

  Flow run_body(const Body& body, Scope& scope) {
    for (const Statement& statement : body) {
      rendering_.go_to(statement.line);
      rendering_.step();
      const Flow flow = run_statement(statement, scope);
      if (flow != Flow::Next) return flow;
    }
    return Flow::Next;
  }

  Flow run_statement(const Statement& statement, Scope& scope) {
    switch (statement.kind) {
      case StatementKind::Text:
        put(statement.text);
        return Flow::Next;
      case StatementKind::Print:
        put(to_text(value_of(*statement.expression, scope), rendering_));
        return Flow::Next;
      case StatementKind::Break:
        return Flow::Break;
      case StatementKind::Continue:
        return Flow::Continue;
      case StatementKind::If:
        return run_if(statement, scope);
      case StatementKind::For:
        run_loop(*statement.loop, scope);
        return Flow::Next;
      case StatementKind::With:
        return run_with(statement, scope);
      default:
        run_block(statement, scope);
        return Flow::Next;
    }
  }

  void run_block(const Statement& statement, Scope& scope) {
    const Rendering::Level level(rendering_);
    switch (statement.kind) {
      case StatementKind::Set:
        return assign(statement.target, value_of(*statement.expression, scope), scope);
      case StatementKind::SetBlock:
        return assign(statement.target, filtered(statement.expression.get(), captured(statement.body, scope), scope),
                      scope);
      case StatementKind::FilterBlock: {
        const Value text = filtered(statement.expression.get(), captured(statement.body, scope), scope);
        if (!text.is(Kind::String)) rendering_.fail("the filters of a block must give a text");
        return put(text.text());
      }
      case StatementKind::Macro:
        return define(*statement.macro, scope);
      case StatementKind::Generation:
        return generate(statement.body, scope);
      default:
        throw std::logic_error("chat: a statement of an unknown kind");
    }
  }

  void generate(const Body& body, Scope& scope) {
    const ScopeFrame frame(*this, &scope);
    const size_t begin = out_->size();
    static_cast<void>(run_body(body, frame.scope()));
    if (out_ == &main_) generated_.push_back({begin, main_.size()});
  }

  void define(const MacroNode& macro, Scope& scope) {
    for (Scope* kept = &scope; kept && !kept->is_kept; kept = kept->parent) kept->is_kept = true;
    rendering_.make(sizeof(Scope) + sizeof(Callable));
    scope.values[macro.name] =
        Value::of(std::make_shared<const Callable>(Callable{macro.name, std::nullopt, &macro, &scope}));
  }

  Flow run_if(const Statement& statement, Scope& scope) {
    const Rendering::Level level(rendering_);
    for (const Branch& branch : statement.branches)
      if (!branch.condition || truth(value_of(*branch.condition, scope))) return run_body(branch.body, scope);
    return Flow::Next;
  }

  Flow run_with(const Statement& statement, Scope& scope) {
    const Rendering::Level level(rendering_);
    const ScopeFrame frame(*this, &scope);
    for (const auto& [target, expression] : statement.assignments)
      assign(target, value_of(*expression, scope), frame.scope());
    return run_body(statement.body, frame.scope());
  }

  bool passes(const ForNode& loop, const Value& item, Scope& scope) {
    if (!loop.condition) return true;
    const ScopeFrame frame(*this, &scope);
    assign(loop.target, item, frame.scope());
    return truth(value_of(*loop.condition, frame.scope()));
  }

  void run_loop(const ForNode& loop, Scope& scope) {
    const Rendering::Level level(rendering_);
    Values items = elements_of(value_of(*loop.over, scope), rendering_);
    // The condition may ask what the body has set, so it is asked as late as may be: only what `loop` tells needs all.
    if (loop.names_loop) std::erase_if(items, [&](const Value& item) { return !passes(loop, item, scope); });
    const auto state = std::make_shared<LoopState>(LoopState{std::move(items)});
    bool is_empty = true;
    for (state->index = 0; state->index < state->items.size(); ++state->index) {
      const Value item = state->items[state->index];
      rendering_.step();
      if (!loop.names_loop && !passes(loop, item, scope)) continue;
      const ScopeFrame frame(*this, &scope);
      if (loop.names_loop) frame.scope().values["loop"] = Value::of(std::shared_ptr<const LoopState>(state));
      assign(loop.target, item, frame.scope());
      const Flow flow = run_body(loop.body, frame.scope());
      if (flow == Flow::Break) break;
      if (flow == Flow::Next) is_empty = false;  // as Jinja2, to which a body that was left early was none
    }
    if (!is_empty) return;
    const ScopeFrame frame(*this, &scope);
    static_cast<void>(run_body(loop.otherwise, frame.scope()));
  }

  void assign(const Target& target, const Value& value, Scope& scope) {
    if (target.is_several) return divide(target, value, scope);
    if (target.attribute.empty()) {
      scope.values.insert_or_assign(target.name, value);
      return;
    }
    const Value holder = named(target.name, scope);
    require_defined(holder, rendering_);
    if (!holder.is(Kind::Namespace))
      rendering_.fail(fmt::format("'{}' is no namespace, whose attributes alone can be set", target.name));
    set_attribute(holder.ns(), target.attribute, value);
  }

  void set_attribute(Namespace& ns, const std::string& name, const Value& value) {
    if (name.starts_with('_'))
      rendering_.fail(fmt::format("a namespace takes no attribute that begins with '_', as '{}'", name));
    ns.attributes.set(Value::of(std::string(name)), value, rendering_);
  }

  void divide(const Target& target, const Value& value, Scope& scope) {
    require_defined(value, rendering_);
    const Values parts = elements_of(value, rendering_);
    if (parts.size() != target.several.size())
      rendering_.fail(fmt::format("{} values cannot be given to {} names", parts.size(), target.several.size()));
    for (size_t i = 0; i < parts.size(); ++i) assign(target.several[i], parts[i], scope);
  }

  // Expressions

  Value value_of(const Expression& node, Scope& scope) {
    const Rendering::Level level(rendering_);
    rendering_.step();
    rendering_.go_to(node.line);
    switch (node.kind) {
      case ExpressionKind::Constant:
        return node.value;
      case ExpressionKind::Name:
        return named(node.text, scope);
      case ExpressionKind::List:
        return Value::sequence(Kind::List, values_of(node.parts, scope), rendering_);
      case ExpressionKind::Tuple:
        return Value::sequence(Kind::Tuple, values_of(node.parts, scope), rendering_);
      case ExpressionKind::Dict:
        return dict_of(node, scope);
      case ExpressionKind::If:
      case ExpressionKind::And:
      case ExpressionKind::Or:
        return chosen(node, scope);
      case ExpressionKind::Concat:
        return concatenated(node, scope);
      case ExpressionKind::Compare:
        return Value::of(compared(node, scope));
      case ExpressionKind::Binary:
      case ExpressionKind::Negative:
      case ExpressionKind::Positive:
      case ExpressionKind::Not:
        return calculated(node, scope);
      default:
        return part_of(node, scope);
    }
  }

  Value part_of(const Expression& node, Scope& scope) {
    const Value value = value_of(*node.parts[0], scope);
    switch (node.kind) {
      case ExpressionKind::Attribute:
        rendering_.go_to(node.line);
        return attribute_of(value, node.text, rendering_);
      case ExpressionKind::Subscript:
        return element_of(value, value_of(*node.parts[1], scope), rendering_);
      case ExpressionKind::Slice:
        return sliced(value, {given(node, 1, scope), given(node, 2, scope), given(node, 3, scope)}, rendering_);
      case ExpressionKind::Filter:
        return apply_filter(node.text, value, arguments_of(node, scope), rendering_);
      case ExpressionKind::Test:
        return Value::of(passes_test(node.text, value, arguments_of(node, scope), rendering_));
      default:
        return called(value, arguments_of(node, scope));
    }
  }

  /// A bound of a slice; None where it is left out.
  Value given(const Expression& node, size_t part, Scope& scope) {
    return node.parts[part] ? value_of(*node.parts[part], scope) : Value::none();
  }

  Values values_of(const std::vector<ExpressionPtr>& nodes, Scope& scope) {
    Values values;
    for (const ExpressionPtr& node : nodes) values.push_back(value_of(*node, scope));
    return values;
  }

  Arguments arguments_of(const Expression& node, Scope& scope) {
    Arguments arguments{values_of(node.arguments.positional, scope)};
    for (const auto& [name, part] : node.arguments.named) arguments.named.emplace_back(name, value_of(*part, scope));
    rendering_.go_to(node.line);
    return arguments;
  }

  /// The filters of a block, of its text.
  Value filtered(const Expression* filters, std::string text, Scope& scope) {
    if (!filters) return Value::of(std::move(text));
    const Value inner = filtered(filters->parts[0].get(), std::move(text), scope);
    return apply_filter(filters->text, inner, arguments_of(*filters, scope), rendering_);
  }

  Value named(const std::string& name, const Scope& scope) {
    for (const Scope* at = &scope; at; at = at->parent) {
      const auto found = at->values.find(name);
      if (found != at->values.end()) return found->second;
    }
    if (const auto found = variables_.find(name); found != variables_.end()) return found->second;
    if (std::ranges::find(kFunctions, name) != kFunctions.end())
      return Value::of(std::make_shared<const Callable>(Callable{name}));
    if (std::ranges::find(kOtherNames, name) != kOtherNames.end()) rendering_.refuse("the name '" + name + "'");
    return Value::undefined(fmt::format("'{}' is undefined", name));
  }

  Value dict_of(const Expression& node, Scope& scope) {
    Dict dict;
    for (size_t i = 0; i < node.parts.size(); i += 2) {
      Value key = value_of(*node.parts[i], scope);
      dict.set(std::move(key), value_of(*node.parts[i + 1], scope), rendering_);
    }
    return Value::of(std::make_shared<const Dict>(std::move(dict)));
  }

  Value chosen(const Expression& node, Scope& scope) {
    if (node.kind == ExpressionKind::If) {
      if (truth(value_of(*node.parts[1], scope))) return value_of(*node.parts[0], scope);
      if (node.parts[2]) return value_of(*node.parts[2], scope);
      return Value::undefined("an inline if has no else, and its condition does not hold");
    }
    Value left = value_of(*node.parts[0], scope);
    const bool decides = truth(left) == (node.kind == ExpressionKind::Or);
    return decides ? left : value_of(*node.parts[1], scope);
  }

  Value concatenated(const Expression& node, Scope& scope) {
    std::string text;
    for (const ExpressionPtr& part : node.parts) {
      text += to_text(value_of(*part, scope), rendering_);
      rendering_.require_size_of_text(text.size());
    }
    rendering_.make(text.size());
    return Value::of(std::move(text));
  }

  bool compared(const Expression& node, Scope& scope) {
    Value left = value_of(*node.parts[0], scope);
    for (size_t i = 0; i < node.operators.size(); ++i) {
      Value right = value_of(*node.parts[i + 1], scope);
      rendering_.go_to(node.line);
      if (!compare(node.operators[i], left, right, rendering_)) return false;
      left = std::move(right);
    }
    return true;
  }

  Value calculated(const Expression& node, Scope& scope) {
    const Value left = value_of(*node.parts[0], scope);
    if (node.kind == ExpressionKind::Not) return Value::of(!truth(left));
    if (node.kind == ExpressionKind::Negative) return negated(left, rendering_);
    if (node.kind == ExpressionKind::Positive)
      return left.is_number() ? calculate("+", Value::of(int64_t{0}), left, rendering_) : negated(left, rendering_);
    const Value right = value_of(*node.parts[1], scope);
    rendering_.go_to(node.line);
    return calculate(node.text, left, right, rendering_);
  }

  // Calls

  Value called(const Value& value, const Arguments& arguments) {
    require_defined(value, rendering_);
    if (value.is(Kind::Loop)) rendering_.refuse("a call of 'loop'");
    if (!value.is(Kind::Callable))
      rendering_.fail(fmt::format("a value of the type {} cannot be called", type_name(value)));
    const Callable& callable = value.callable();
    if (callable.self) return call_method(*callable.self, callable.name, arguments, rendering_);
    return callable.macro ? call_macro(callable, arguments) : call_function(callable.name, arguments);
  }

  Value call_macro(const Callable& callable, const Arguments& arguments) {
    const Rendering::Level level(rendering_);
    const MacroNode& macro = *callable.macro;
    const ScopeFrame frame(*this, callable.scope);
    const int line = rendering_.line();
    bind(macro, arguments, frame.scope());
    std::string text = captured_in(macro.body, frame.scope());
    rendering_.go_to(line);
    return Value::of(std::move(text));
  }

  void bind(const MacroNode& macro, const Arguments& arguments, Scope& scope) {
    const auto& names = macro.parameters;
    if (arguments.positional.size() > names.size())
      rendering_.fail(fmt::format("the macro '{}' takes {} arguments, not {}", macro.name, names.size(),
                                  arguments.positional.size()));
    for (size_t i = 0; i < arguments.positional.size(); ++i)
      scope.values.insert_or_assign(names[i], arguments.positional[i]);
    for (const auto& [name, value] : arguments.named) {
      const auto found = std::ranges::find(names, name);
      if (found == names.end() || static_cast<size_t>(found - names.begin()) < arguments.positional.size())
        rendering_.fail(fmt::format("the macro '{}' takes no argument '{}' there", macro.name, name));
      scope.values.insert_or_assign(name, value);
    }
    const size_t without_default = names.size() - macro.defaults.size();
    for (size_t i = arguments.positional.size(); i < names.size(); ++i) {
      if (std::ranges::any_of(arguments.named, [&](const auto& named_one) { return named_one.first == names[i]; }))
        continue;
      scope.values.insert_or_assign(
          names[i], i < without_default ? Value::undefined(fmt::format("the argument '{}' was not given", names[i]))
                                        : value_of(*macro.defaults[i - without_default], scope));
    }
  }

  Value call_function(const std::string& name, const Arguments& arguments) {
    if (name == "range") return range(arguments);
    if (name == "namespace") return made_namespace(arguments);
    if (name == "dict") return Value::of(std::make_shared<const Dict>(made_dict(arguments)));
    if (name == "strftime_now") return now(Bound(name, arguments, {"format"}, rendering_).text(0));
    const Value message = Bound(name, arguments, {"message"}, rendering_).required(0);
    rendering_.fail("the template says: " + tokenizer::printable(to_text(message, rendering_)));
  }

  Value range(const Arguments& arguments) {
    const Bound bound("range", arguments, {"start", "stop", "step"}, rendering_);
    const int64_t start = bound.has(1) ? bound.whole(0) : 0, stop = bound.has(1) ? bound.whole(1) : bound.whole(0),
                  step = bound.whole(2, 1);
    if (step == 0) rendering_.fail("range has the step 0");
    Values items;
    for (__int128 at = start; step > 0 ? at < stop : at > stop; at += step) {
      if (items.size() >= static_cast<size_t>(kMaxRange))
        rendering_.fail(fmt::format("a range has more than {} numbers", kMaxRange));
      items.push_back(Value::of(static_cast<int64_t>(at)));
    }
    rendering_.step(items.size());
    std::string printed =
        step == 1 ? fmt::format("range({}, {})", start, stop) : fmt::format("range({}, {}, {})", start, stop, step);
    return Value::sequence(Kind::Range, std::move(items), rendering_, std::move(printed));
  }

  Dict made_dict(const Arguments& arguments) {
    if (arguments.positional.size() > 1) rendering_.fail("dict and namespace take one value without a name at most");
    Dict dict;
    if (!arguments.positional.empty()) {
      const Value& from = arguments.positional[0];
      require_defined(from, rendering_);
      if (from.is(Kind::Dict))
        dict = from.dict();
      else
        add_pairs(dict, from);
    }
    for (const auto& [key, value] : arguments.named) dict.set(Value::of(std::string(key)), value, rendering_);
    return dict;
  }

  void add_pairs(Dict& dict, const Value& pairs) {
    for (const Value& pair : elements_of(pairs, rendering_)) {
      const Values parts = elements_of(pair, rendering_);
      if (parts.size() != 2) rendering_.fail("dict takes pairs of a key and a value");
      dict.set(parts[0], parts[1], rendering_);
    }
  }

  Value made_namespace(const Arguments& arguments) {
    const Dict dict = made_dict(arguments);
    rendering_.make(sizeof(Namespace));
    Namespace& ns = namespaces_.emplace_back();
    for (const auto& [key, value] : dict.entries) {
      if (!key.is(Kind::String)) rendering_.fail("a namespace takes names that are texts");
      set_attribute(ns, key.text(), value);
    }
    return Value::of(&ns);
  }

  Value now(const std::string& format) {
    if (!settings_.now)
      rendering_.fail(fmt::format("strftime_now, where no time is given, is not offered in chat templates here{}",
                                  settings_.instead_of_now));
    if (format.find("%f") != std::string::npos || format.find('\0') != std::string::npos)
      rendering_.refuse("microseconds in strftime_now");
    if (format.empty()) return Value::of(std::string());
    std::string plain = format;
    for (const std::string_view zone : {"%Z", "%z"})  // a time without a zone, as Python's datetime.now()
      for (size_t at = plain.find(zone); at != std::string::npos; at = plain.find(zone)) plain.erase(at, zone.size());
    std::string text(plain.size() * 64 + 64, '\0');
    rendering_.make_text(text.size());
    text.resize(std::strftime(text.data(), text.size(), plain.c_str(), &*settings_.now));
    return Value::of(std::move(text));
  }

  const Settings& settings_;
  Rendering rendering_;
  std::unordered_map<std::string, Value> variables_;
  std::deque<Namespace> namespaces_;
  std::vector<std::unique_ptr<Scope>> kept_;
  std::string main_;
  std::string* out_ = &main_;
  std::vector<Rendered::Span> generated_;
};

}  // namespace

Rendered evaluate(const Body& body, const std::string& name, const nlohmann::ordered_json& variables,
                  const Settings& settings) {
  return Evaluator(name, variables, settings).run(body);
}

}  // namespace trainyard::chat
