#pragma once

#include <string>

#include "chat/arguments.h"
#include "chat/value.h"

namespace trainyard::chat {

/// What `value is name(arguments)` says. Throws InputError, naming the test, for one that is not offered.
bool passes_test(const std::string& name, const Value& value, const Arguments& arguments, Rendering& rendering);

}  // namespace trainyard::chat
