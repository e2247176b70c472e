#pragma once

#include <string>

#include "chat/value.h"

namespace trainyard::chat {

// As Python's str() and repr(); what is undefined prints as nothing. Throw InputError for what prints an address.
std::string to_text(const Value& value, Rendering& rendering);
std::string to_repr(const Value& value, Rendering& rendering);

/// repr() of a float: the shortest digits that read back.
std::string float_text(double value);

}  // namespace trainyard::chat
