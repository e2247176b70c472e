#include "api/container_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "api/field.h"
#include "api/label_rules.h"
#include "api/quantity.h"
#include "base/text.h"

namespace trainyard::api {
namespace {

void check_variables(const Json& container, const std::string& path, const Refuse& refuse) {
  const Json& variables = list_or_empty(container, "/env");
  for (size_t i = 0; i < variables.size(); ++i) {
    const std::string name = text_at(variables[i], "/name");
    const auto is_known = [](char c) { return c >= ' ' && c <= '~' && c != '='; };
    if (!std::ranges::all_of(name, is_known))
      refuse(fmt::format("{}.env[{}].name", path, i),
             invalid(name, "a valid environment variable name must consist only of printable ASCII characters other "
                           "than '='"));
  }
}

// Resources.

bool is_huge_page(std::string_view name) {
  return name.starts_with("hugepages-");
}
/// Kubernetes' own: those without a domain, or in its.
bool is_native(std::string_view name) {
  return name.find('/') == std::string_view::npos || name.find("kubernetes.io/") != std::string_view::npos;
}
/// Whether more may be used than is asked for.
bool may_be_exceeded(std::string_view name) {
  return is_native(name) && !is_huge_page(name);
}

std::string resource_name_defect(const std::string& name) {
  if (const std::string defect = qualified_name_defect(name); !defect.empty()) return defect;
  const bool is_standard = name == "cpu" || name == "memory" || name == "ephemeral-storage" || is_huge_page(name);
  return name.find('/') != std::string::npos || is_standard ? "" : "must be a standard resource for containers";
}

void check_amount(const std::string& name, const Quantity& amount, const std::string& path, const Refuse& refuse) {
  if (const std::string defect = resource_name_defect(name); !defect.empty())
    return refuse(path, invalid(name, defect));
  if (amount < Quantity()) refuse(path, invalid(amount.text(), "must be greater than or equal to 0"));
  if (!is_native(name) && amount.value() != std::trunc(amount.value()))
    refuse(path, invalid(amount.text(), "must be an integer"));
}

/// Amounts that are none are the schema's business.
Resources amounts_at(const Json& container, const char* pointer) {
  Resources amounts;
  if (const Json* const found = object_at(container, pointer))
    for (const auto& [name, value] : found->items())
      if (const auto amount = Quantity::parse_json(value)) amounts.emplace(name, *amount);
  return amounts;
}

void check_resources(const Json& container, const std::string& path, const Refuse& refuse) {
  const Resources limits = amounts_at(container, "/resources/limits"),
                  requests = amounts_at(container, "/resources/requests");
  for (const auto& [name, limit] : limits) check_amount(name, limit, fmt::format("{}.limits[{}]", path, name), refuse);
  for (const auto& [name, request] : requests) {
    check_amount(name, request, fmt::format("{}.requests[{}]", path, name), refuse);
    const auto limit = limits.find(name);
    if (limit == limits.end()) {
      if (!may_be_exceeded(name))
        refuse(path + ".limits", "Required value: Limit must be set for non overcommitable resources");
    } else if (request != limit->second && !may_be_exceeded(name)) {
      refuse(path + ".requests",
             invalid(request.text(), fmt::format("must be equal to {} limit of {}", name, limit->second.text())));
    } else if (request > limit->second) {
      refuse(path + ".requests", invalid(request.text(), fmt::format("must be less than or equal to {} limit of {}", name,
                                                                     limit->second.text())));
    }
  }
}

// Probes and hooks.

void check_handler(const Json& asked, const std::string& path, const Refuse& refuse) {
  int handlers = 0;
  for (const char* const kind : {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}) {
    if (!object_at(asked, std::string("/") + kind)) continue;
    if (++handlers > 1) refuse(fmt::format("{}.{}", path, kind), "Forbidden: may not specify more than 1 handler type");
  }
  const auto is_object = [](const Json& field) { return field.is_object(); };  // one of a newer server may be a handler
  if (handlers == 0 && std::ranges::none_of(asked, is_object)) refuse(path, "Required value: must specify a handler type");
}

void check_probe(const Json& probe, const std::string& path, const Refuse& refuse) {
  check_handler(probe, path, refuse);
  for (const char* const field :
       {"initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"})
    if (const auto number = int_at(probe, std::string("/") + field); number && *number < 0)
      refuse(fmt::format("{}.{}", path, field), invalid(*number, "must be greater than or equal to 0"));
}

// Volumes.

/// The kinds of volumes in the order in which the server looks for a second one, and what its paths call them. Those of a
/// newer one are not known.
constexpr std::array kVolumeKinds = std::to_array<std::array<const char*, 2>>({
    {"emptyDir", "emptyDir"}, {"hostPath", "hostPath"}, {"gitRepo", "gitRepo"},
    {"gcePersistentDisk", "gcePersistentDisk"}, {"awsElasticBlockStore", "awsElasticBlockStore"}, {"secret", "secret"},
    {"nfs", "nfs"}, {"iscsi", "iscsi"}, {"glusterfs", "glusterfs"}, {"flocker", "flocker"},
    {"persistentVolumeClaim", "persistentVolumeClaim"}, {"rbd", "rbd"}, {"cinder", "cinder"}, {"cephfs", "cephFS"},
    {"quobyte", "quobyte"}, {"downwardAPI", "downwarAPI"}, {"fc", "fc"}, {"flexVolume", "flexVolume"},
    {"configMap", "configMap"}, {"azureFile", "azureFile"}, {"vsphereVolume", "vsphereVolume"},
    {"photonPersistentDisk", "photonPersistentDisk"}, {"portworxVolume", "portworxVolume"}, {"azureDisk", "azureDisk"},
    {"storageos", "storageos"}, {"projected", "projected"}, {"scaleIO", "scaleIO"}, {"csi", "csi"},
    {"ephemeral", "ephemeral"}, {"image", "image"}});

void check_volume(const Json& volume, const std::string& path, const Refuse& refuse) {
  bool has_kind = false;
  for (const auto& [kind, shown_kind] : kVolumeKinds) {
    if (!object_at(volume, std::string("/") + kind)) continue;
    if (has_kind) refuse(fmt::format("{}.{}", path, shown_kind), "Forbidden: may not specify more than 1 volume type");
    has_kind = true;
  }
  const std::string name = text_at(volume, "/name");
  if (const std::string defect = name.empty() ? "" : label_defect(name); !defect.empty())
    refuse(path + ".name", invalid(name, defect));
  constexpr std::array<std::array<const char*, 2>, 3> kNamed{
      {{"configMap", "name"}, {"secret", "secretName"}, {"persistentVolumeClaim", "claimName"}}};
  for (const auto& [kind, field] : kNamed)
    if (const Json* const source = object_at(volume, std::string("/") + kind);
        source && text_at(*source, std::string("/") + field).empty())
      refuse(fmt::format("{}.{}.{}", path, kind, field), "Required value");
}

/// A mount of no volume is let be: the server says so at the pod's event, as under the reference, and a webhook of the
/// cluster may add the volume to the pod.
void check_mounts(const Json& container, const std::string& path, const Refuse& refuse) {
  const Json& mounts = list_or_empty(container, "/volumeMounts");
  for (size_t i = 0; i < mounts.size(); ++i) {
    const std::string at = fmt::format("{}.volumeMounts[{}]", path, i);
    const std::string below = text_at(mounts[i], "/subPath"), expression = text_at(mounts[i], "/subPathExpr");
    for (const auto& [field, text] : {std::pair{"subPath", &below}, std::pair{"subPathExpr", &expression}}) {
      const std::string whole = fmt::format("{}.volumeMounts.{}", path, field);
      if (text->starts_with('/')) refuse(whole, invalid(*text, "must be a relative path"));
      if (std::ranges::count(parts_of(*text, '/'), "..") > 0) refuse(whole, invalid(*text, "must not contain '..'"));
    }
    if (!below.empty() && !expression.empty())
      refuse(at + ".subPathExpr", invalid(expression, "subPathExpr and subPath are mutually exclusive"));
  }
}

}  // namespace

void check_container_fields(const Json& container, const std::string& path, const Refuse& refuse) {
  check_word(text_at(container, "/imagePullPolicy"), {"Always", "IfNotPresent", "Never"},
             path + ".imagePullPolicy", refuse);
  check_variables(container, path, refuse);
  check_resources(container, path + ".resources", refuse);
  for (const char* const field : {"runAsUser", "runAsGroup"})
    check_id(int_at(container, std::string("/securityContext/") + field),
             fmt::format("{}.securityContext.{}", path, field), refuse);
  for (const char* const probe : {"livenessProbe", "readinessProbe", "startupProbe"})
    if (const Json* const asked = object_at(container, std::string("/") + probe))
      check_probe(*asked, fmt::format("{}.{}", path, probe), refuse);
  for (const char* const hook : {"postStart", "preStop"})
    if (const Json* const asked = object_at(container, std::string("/lifecycle/") + hook))
      check_handler(*asked, fmt::format("{}.lifecycle.{}", path, hook), refuse);
}

void check_id(const std::optional<int64_t>& id, const std::string& path, const Refuse& refuse) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (id && (*id < 0 || *id > kMost)) refuse(path, invalid(*id, between(0, kMost)));
}

void check_volumes(const Json& spec, const std::string& path, const Refuse& refuse) {
  const Json& volumes = list_or_empty(spec, "/volumes");
  for (size_t i = 0; i < volumes.size(); ++i)
    check_volume(volumes[i], fmt::format("{}.volumes[{}]", path, i), refuse);
  for (const char* const list : {"containers", "initContainers"}) {
    const Json& containers = list_or_empty(spec, std::string("/") + list);
    for (size_t i = 0; i < containers.size(); ++i)
      check_mounts(containers[i], fmt::format("{}.{}[{}]", path, list, i), refuse);
  }
}

}  // namespace trainyard::api
