#include <fmt/format.h>
#include <unistd.h>

#include <cmath>

#include "api/quantity.h"
#include "local/addresses.h"
#include "local/manifest/refusal.h"
#include "local/pod_context.h"

namespace trainyard::local {
namespace {

void add_all(const Entries* entries, const std::string& prefix, Variables& variables) {
  if (!entries) return;
  for (const auto& [key, value] : *entries) variables[prefix + key] = value;
}

std::optional<std::string> entry_of(const Entries* entries, const char* kind, const Json& reference,
                                    const PodContext& context) {
  if (!entries) return std::nullopt;
  const std::string key = text_at(reference, "/key");
  if (const auto found = entries->find(key); found != entries->end()) return found->second;
  const Json* const optional = find(reference, "/optional");
  if (optional && *optional == true) return std::nullopt;
  throw Refusal(fmt::format("pod {}: {} '{}' has no key '{}'", context.name(), kind, text_at(reference, "/name"), key));
}

/// None where an optional reference leads nowhere: the variable is then not set at all.
std::optional<std::string> referenced_value(const Json& source, const Json& container, const PodContext& context) {
  if (const Json* const reference = find(source, "/configMapKeyRef"))
    return entry_of(context.config_map(*reference), "ConfigMap", *reference, context);
  if (const Json* const reference = find(source, "/secretKeyRef"))
    return entry_of(context.secret(*reference), "Secret", *reference, context);
  if (const Json* const reference = find(source, "/fieldRef"))
    return field_at(text_at(*reference, "/fieldPath"), context);
  if (const Json* const reference = find(source, "/resourceFieldRef")) return resource_field(*reference, container);
  throw Refusal(fmt::format("pod {}: valueFrom needs configMapKeyRef, secretKeyRef, fieldRef or resourceFieldRef",
                            context.name()));
}

double machine_amount(const std::string& resource) {
  if (resource == "cpu") return static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  if (resource == "memory")
    return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  return 0;
}

}  // namespace

std::string resource_field(const Json& reference, const Json& container) {
  const std::string field = text_at(reference, "/resource");  // "limits.cpu"
  const size_t dot = field.find('.');
  const std::string list = field.substr(0, dot), resource = dot == std::string::npos ? "" : field.substr(dot + 1);
  if ((list != "limits" && list != "requests") || resource.empty())
    throw Refusal(
        fmt::format("resourceFieldRef '{}' is unknown; limits.cpu, requests.memory and the like are there", field));
  const auto amount = [&](const std::string& of) -> std::optional<double> {
    const auto at = Json::json_pointer("/resources/" + of) / resource;
    const auto quantity = container.contains(at) ? api::Quantity::parse_json(container.at(at)) : std::nullopt;
    return quantity ? std::optional(quantity->value()) : std::nullopt;
  };
  const double value = amount(list).value_or(amount("limits").value_or(machine_amount(resource)));
  const Json* const written = find(reference, "/divisor");
  const double divisor = written ? api::Quantity::parse_json(*written).value_or(api::Quantity()).value() : 0;
  return fmt::format("{:.0f}", std::ceil(value / (divisor > 0 ? divisor : 1)));
}

Variables environment_of(const Json& container, const PodContext& context) {
  Variables variables;
  for (const Json& source : container.value("envFrom", Json::array())) {
    const std::string prefix = text_at(source, "/prefix");
    if (const Json* const reference = find(source, "/configMapRef"))
      add_all(context.config_map(*reference), prefix, variables);
    if (const Json* const reference = find(source, "/secretRef"))
      add_all(context.secret(*reference), prefix, variables);
  }
  for (const Json& variable : container.value("env", Json::array())) {
    const std::string name = text_at(variable, "/name");
    const Json* const source = find(variable, "/valueFrom");
    if (!source || source->is_null()) {
      variables[name] = expand(with_loopback(text_at(variable, "/value"), context.job), variables);
    } else if (const auto value = referenced_value(*source, container, context)) {
      variables[name] = *value;
    }
  }
  return variables;
}

}  // namespace trainyard::local
