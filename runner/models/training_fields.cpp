#include "models/training_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace trainyard::models {
namespace {

using nlohmann::json;

/// By what the names in transformers' configurations have in common: attention_dropout, hidden_dropout_prob,
/// resid_pdrop, layerdrop, drop_path_rate; router_aux_loss_coef, router_z_loss_coef, output_router_logits,
/// router_jitter_noise.
bool acts_only_in_training(std::string_view name) {
  if (name.starts_with("classifier_") || name.starts_with("summary_")) return false;
  constexpr std::string_view kParts[] = {"drop", "aux_loss", "z_loss", "router_logits", "jitter"};
  return std::ranges::any_of(kParts,
                             [name](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

bool asks_for_nothing(const json& value) {
  return value.is_null() || value == 0 || value == false;
}

}  // namespace

std::string untrainable_field(const json& document, const std::string& where, const Family& family) {
  for (const auto& [name, value] : document.items()) {
    if (!acts_only_in_training(name) || asks_for_nothing(value)) continue;
    if (std::ranges::find(family.trains_with, name) != family.trains_with.end()) continue;
    return fmt::format("{}: {} is {}; a {} model here has none, so it can be trained only with {}", where, name,
                       value.dump(), family.name, value.is_boolean() ? "false" : "0");
  }
  return "";
}

}  // namespace trainyard::models
