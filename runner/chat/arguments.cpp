#include "chat/arguments.h"

#include <fmt/format.h>

#include <algorithm>

namespace trainyard::chat {

Bound::Bound(std::string_view what, const Arguments& arguments, std::initializer_list<std::string_view> parameters,
             Rendering& rendering)
    : what_(what), names_(parameters.begin(), parameters.end()), values_(parameters.size()), rendering_(rendering) {
  if (arguments.positional.size() > values_.size())
    rendering.fail(fmt::format("{} takes {} arguments, not {}", what, values_.size(), arguments.positional.size()));
  std::ranges::copy(arguments.positional, values_.begin());
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) rendering.fail(fmt::format("{} has no argument '{}' here", what, name));
    auto& slot = values_[static_cast<size_t>(found - names_.begin())];
    if (slot) rendering.fail(fmt::format("{} is given '{}' twice", what, name));
    slot = value;
  }
}

const Value& Bound::required(size_t index) const {
  if (!values_[index]) rendering_.fail(fmt::format("{} lacks its argument '{}'", what_, names_[index]));
  return *values_[index];
}

const std::string& Bound::text(size_t index) const {
  const Value& value = required(index);
  require_defined(value, rendering_);
  if (!value.is(Kind::String))
    rendering_.fail(fmt::format("{}: '{}' must be a text, is of the type {}", what_, names_[index], type_name(value)));
  return value.text();
}

int64_t Bound::whole(size_t index, std::optional<int64_t> otherwise) const {
  if (!has(index) && otherwise) return *otherwise;
  const Value& value = required(index);
  require_defined(value, rendering_);
  if (!value.is_whole())
    rendering_.fail(
        fmt::format("{}: '{}' must be a whole number, is of the type {}", what_, names_[index], type_name(value)));
  return value.whole();
}

}  // namespace trainyard::chat
