#pragma once

#include <string>

#include "chat/value.h"

namespace trainyard::chat {

// These print as Python's str() and repr() do, and nothing for what is undefined. They throw InputError for what prints
// an address.
std::string to_text(const Value& value, Rendering& rendering);
std::string to_repr(const Value& value, Rendering& rendering);

/// repr() of a float: the shortest digits that read back.
std::string float_text(double value);

}  // namespace trainyard::chat
