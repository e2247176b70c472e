#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/value.h"

namespace trainyard::chat {

/// What a filter, a test, a function or a method is called with.
struct Arguments {
  Values positional{};
  std::vector<std::pair<std::string, Value>> named{};
};

/// Arguments by the names of parameters, in their order.
class Bound {
 public:
  /// Throws InputError, beginning with `what`, for more than there are, for unknown names, and for one that is given
  /// twice.
  Bound(std::string_view what, const Arguments& arguments, std::initializer_list<std::string_view> parameters,
        Rendering& rendering);

  [[nodiscard]] bool has(size_t index) const { return values_[index].has_value(); }
  /// None where it was not given.
  [[nodiscard]] Value value(size_t index) const { return values_[index].value_or(Value::none()); }

  // Each throws InputError where the value is of another type, or is missing and nothing stands for it.
  [[nodiscard]] const Value& required(size_t index) const;
  [[nodiscard]] const std::string& text(size_t index) const;
  [[nodiscard]] int64_t whole(size_t index, std::optional<int64_t> otherwise = std::nullopt) const;
  /// A truth that must be a number.
  [[nodiscard]] bool whole_flag(size_t index) const { return whole(index, 0) != 0; }
  [[nodiscard]] bool flag(size_t index) const { return has(index) && truth(*values_[index]); }

 private:
  std::string what_;
  std::vector<std::string> names_;
  std::vector<std::optional<Value>> values_;
  Rendering& rendering_;
};

}  // namespace trainyard::chat
