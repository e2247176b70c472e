#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "models/family.h"

// Fields of a config.json that act only in training: dropouts, the losses of routers.
namespace trainyard::models {

/// The first of them that asks for what `family` does not do, as ModelConfig::untrainable says it; empty: none does.
/// 0, false and null ask for nothing, as do fields of heads that classify: no model here has one.
std::string untrainable_field(const nlohmann::json& document, const std::string& where, const Family& family);

}  // namespace trainyard::models
