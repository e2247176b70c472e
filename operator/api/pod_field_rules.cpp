#include "api/pod_field_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "api/container_rules.h"
#include "api/field.h"
#include "api/label_rules.h"

namespace trainyard::api {
namespace {

void check_toleration(const Json& toleration, const std::string& path, const Refuse& refuse) {
  const std::string key = text_at(toleration, "/key"), how = text_at(toleration, "/operator"),
                    value = text_at(toleration, "/value"), effect = text_at(toleration, "/effect");
  if (const std::string defect = key.empty() ? "" : qualified_name_defect(key); !defect.empty())
    refuse(path + ".key", invalid(key, defect));
  if (key.empty() && how != "Exists")
    refuse(path + ".operator", invalid(how, "operator must be Exists when `key` is empty, which means \"match all "
                                            "values and all keys\""));
  if (int_at(toleration, "/tolerationSeconds") && effect != "NoExecute")
    refuse(path + ".effect", invalid(effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"));
  if (how == "Exists" && !value.empty())
    refuse(path + ".operator", invalid(value, "value must be empty when `operator` is 'Exists'"));
  if (const std::string defect = label_value_defect(value); how != "Exists" && !defect.empty())
    refuse(path + ".operator", invalid(value, defect));
  check_word(how, {"Equal", "Exists"}, path + ".operator", refuse);
  check_word(effect, {"NoSchedule", "PreferNoSchedule", "NoExecute"}, path + ".effect", refuse);
}

/// Two constraints of one kind are the schema's business.
void check_spread(const Json& constraint, const std::string& path, const Refuse& refuse) {
  const std::string how = text_at(constraint, "/whenUnsatisfiable");
  for (const char* const field : {"maxSkew", "minDomains"})
    if (const auto number = int_at(constraint, std::string("/") + field); number && *number <= 0)
      refuse(fmt::format("{}.{}", path, field), invalid(*number, kPositive));
  if (text_at(constraint, "/topologyKey").empty()) refuse(path + ".topologyKey", "Required value: can not be empty");
  if (how != "DoNotSchedule" && how != "ScheduleAnyway")
    refuse(path + ".whenUnsatisfiable", unsupported(how, {"DoNotSchedule", "ScheduleAnyway"}));
  if (const auto least = int_at(constraint, "/minDomains"); least && how != "DoNotSchedule")
    refuse(path + ".minDomains",
           invalid(*least, fmt::format("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}", how)));
}

void check_security(const Json& context, const std::string& path, const Refuse& refuse) {
  for (const char* const field : {"fsGroup", "runAsUser", "runAsGroup"})
    check_id(int_at(context, std::string("/") + field), fmt::format("{}.{}", path, field), refuse);
  const Json& groups = list_or_empty(context, "/supplementalGroups");
  for (size_t i = 0; i < groups.size(); ++i)
    check_id(int_at(groups[i], ""), fmt::format("{}.supplementalGroups[{}]", path, i), refuse);
}

std::string in_small_letters(std::string text) {
  std::ranges::for_each(text, [](char& c) { c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

void check_label_map(const Json& object, const char* field, const std::string& path, const Refuse& refuse) {
  const Json* const labels = object_at(object, std::string("/") + field);
  if (!labels) return;
  const std::string at = fmt::format("{}.{}", path, field);
  for (const auto& [key, value] : labels->items()) {
    if (const std::string defect = qualified_name_defect(key); !defect.empty()) refuse(at, invalid(key, defect));
    if (!value.is_string()) continue;
    const auto text = value.get<std::string>();
    if (const std::string defect = label_value_defect(text); !defect.empty()) refuse(at, invalid(text, defect));
  }
}

}  // namespace

void check_pod_fields(const Json& spec, const std::string& path, const Refuse& refuse) {
  const std::string policy = text_at(spec, "/dnsPolicy"), host = text_at(spec, "/hostname");
  check_word(policy, {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"}, path + ".dnsPolicy", refuse);
  if (policy == "None" && !object_at(spec, "/dnsConfig"))
    refuse(path + ".dnsConfig", "Required value: must provide `dnsConfig` when `dnsPolicy` is None");
  else if (policy == "None" && list_or_empty(spec, "/dnsConfig/nameservers").empty())
    refuse(path + ".dnsConfig.nameservers", "Required value: must provide at least one DNS nameserver when `dnsPolicy` "
                                            "is None");
  if (const std::string defect = host.empty() ? "" : label_defect(host); !defect.empty())
    refuse(path + ".hostname", invalid(host, defect));
  if (const auto seconds = int_at(spec, "/activeDeadlineSeconds"); seconds && *seconds < 1)
    refuse(path + ".activeDeadlineSeconds", invalid(*seconds, between(1, std::numeric_limits<int32_t>::max())));
  if (const Json* const context = object_at(spec, "/securityContext"))
    check_security(*context, path + ".securityContext", refuse);
  if (!list_or_empty(spec, "/ephemeralContainers").empty())
    refuse(path + ".ephemeralContainers", "Forbidden: cannot be set on create");
  const Json& constraints = list_or_empty(spec, "/topologySpreadConstraints");
  for (size_t i = 0; i < constraints.size(); ++i)
    check_spread(constraints[i], fmt::format("{}.topologySpreadConstraints[{}]", path, i), refuse);
  const Json& tolerations = list_or_empty(spec, "/tolerations");
  for (size_t i = 0; i < tolerations.size(); ++i)
    check_toleration(tolerations[i], fmt::format("{}.tolerations[{}]", path, i), refuse);
  check_label_map(spec, "nodeSelector", path, refuse);
}

void check_labels(const Json& metadata, const std::string& path, const Refuse& refuse) {
  check_label_map(metadata, "labels", path, refuse);
  if (const Json* const annotations = object_at(metadata, "/annotations"))
    for (const auto& [key, value] : annotations->items())
      if (const std::string defect = qualified_name_defect(in_small_letters(key)); !defect.empty())
        refuse(path + ".annotations", invalid(key, defect));
}

}  // namespace trainyard::api
