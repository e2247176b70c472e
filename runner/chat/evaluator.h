#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "chat/rendered.h"
#include "chat/syntax.h"

namespace trainyard::chat {

/// What Template::render() does.
Rendered evaluate(const Body& body, const std::string& name, const nlohmann::ordered_json& variables,
                  const Settings& settings);

}  // namespace trainyard::chat
