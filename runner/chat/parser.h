#pragma once

#include <string>
#include <string_view>

#include "chat/syntax.h"

namespace trainyard::chat {

/// Throws InputError, beginning with `name` and the line, for what is no template or is not offered.
Body parse_template(std::string_view source, const std::string& name);

}  // namespace trainyard::chat
