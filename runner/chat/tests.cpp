#include "chat/tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "chat/letters.h"
#include "chat/operators.h"
#include "chat/printing.h"

namespace trainyard::chat {
namespace {

/// Whether it is a sequence to Jinja2: it has a length and elements by number or key.
bool is_sequence(const Value& value) {
  switch (value.kind()) {
    case Kind::Undefined:
    case Kind::String:
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
    case Kind::Dict:
      return true;
    default:
      return false;
  }
}

bool is_iterable(const Value& value) {
  return is_sequence(value) || value.is(Kind::View) || value.is(Kind::Iterator) || value.is(Kind::Loop);
}

bool is_odd(const Value& value, Rendering& rendering) {
  return equal(calculate("%", value, Value::of(int64_t{2}), rendering), Value::of(int64_t{1}), rendering);
}

bool is_even(const Value& value, Rendering& rendering) {
  return equal(calculate("%", value, Value::of(int64_t{2}), rendering), Value::of(int64_t{0}), rendering);
}

using Ask = bool (*)(const Value& value, Rendering& rendering);
struct NamedTest {
  const char* name;
  Ask ask;
};

constexpr std::array kTests{
    NamedTest{"defined", [](const Value& value, Rendering&) { return !value.is(Kind::Undefined); }},
    NamedTest{"undefined", [](const Value& value, Rendering&) { return value.is(Kind::Undefined); }},
    NamedTest{"none", [](const Value& value, Rendering&) { return value.is(Kind::None); }},
    NamedTest{"boolean", [](const Value& value, Rendering&) { return value.is(Kind::Bool); }},
    NamedTest{"true", [](const Value& value, Rendering&) { return value.is(Kind::Bool) && value.flag(); }},
    NamedTest{"false", [](const Value& value, Rendering&) { return value.is(Kind::Bool) && !value.flag(); }},
    NamedTest{"integer", [](const Value& value, Rendering&) { return value.is(Kind::Int); }},
    NamedTest{"float", [](const Value& value, Rendering&) { return value.is(Kind::Float); }},
    NamedTest{"number", [](const Value& value, Rendering&) { return value.is_number(); }},
    NamedTest{"string", [](const Value& value, Rendering&) { return value.is(Kind::String); }},
    NamedTest{"mapping", [](const Value& value, Rendering&) { return value.is(Kind::Dict); }},
    NamedTest{"sequence", [](const Value& value, Rendering&) { return is_sequence(value); }},
    NamedTest{"iterable", [](const Value& value, Rendering&) { return is_iterable(value); }},
    NamedTest{"callable",
              [](const Value& value, Rendering&) {
                return value.is(Kind::Callable) || value.is(Kind::Loop) || value.is(Kind::Undefined);
              }},
    NamedTest{"lower", [](const Value& value, Rendering& rendering) { return is_lower(to_text(value, rendering)); }},
    NamedTest{"upper", [](const Value& value, Rendering& rendering) { return is_upper(to_text(value, rendering)); }},
    NamedTest{"odd", is_odd},
    NamedTest{"even", is_even},
};

struct NamedOperator {
  const char* name;
  const char* op;
};

constexpr std::array kOperatorTests{
    NamedOperator{"eq", "=="}, NamedOperator{"equalto", "=="},   NamedOperator{"ne", "!="}, NamedOperator{"lt", "<"},
    NamedOperator{"le", "<="}, NamedOperator{"lessthan", "<"},   NamedOperator{"gt", ">"},  NamedOperator{"ge", ">="},
    NamedOperator{"in", "in"}, NamedOperator{"greaterthan", ">"}};

}  // namespace

bool passes_test(const std::string& name, const Value& value, const Arguments& arguments, Rendering& rendering) {
  rendering.step();
  const std::string what = "the test '" + name + "'";
  if (const auto* const found = std::ranges::find_if(kTests, [&](const auto& test) { return name == test.name; });
      found != kTests.end()) {
    static_cast<void>(Bound(what, arguments, {}, rendering));
    return found->ask(value, rendering);
  }
  const auto* const op =
      std::ranges::find_if(kOperatorTests, [&](const auto& test) { return name == test.name || name == test.op; });
  if (op != kOperatorTests.end())
    return compare(op->op, value, Bound(what, arguments, {"other"}, rendering).required(0), rendering);
  if (name == "divisibleby") {
    const Value by = Bound(what, arguments, {"num"}, rendering).required(0);
    return equal(calculate("%", value, by, rendering), Value::of(int64_t{0}), rendering);
  }
  rendering.refuse(what);
}

}  // namespace trainyard::chat
