#pragma once

#include <string>
#include <string_view>

#include "chat/arguments.h"
#include "chat/value.h"

namespace trainyard::chat {

/// value.name: a method or an attribute of the type, else the element of that key, else undefined.
Value attribute_of(const Value& value, const std::string& name, Rendering& rendering);
/// value[key]: the element, else for a text what attribute_of() gives, else undefined.
Value element_of(const Value& value, const Value& key, Rendering& rendering);

/// Throws InputError, naming the method, for one that is not offered.
Value call_method(const Value& self, const std::string& name, const Arguments& arguments, Rendering& rendering);

}  // namespace trainyard::chat
