#pragma once

#include <string>

#include "chat/arguments.h"
#include "chat/value.h"

namespace trainyard::chat {

/// What `value|name(arguments)` is. Throws InputError, naming the filter, for one that is not offered.
Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments, Rendering& rendering);

}  // namespace trainyard::chat
