#include "decide/objects/init_container.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/annotations.h"
#include "base/text.h"
#include "decide/objects/names.h"

namespace trainyard::decide {
namespace {

constexpr int kNobody = 65532;  // for an image whose own user is root, where the job may not be root

void replace_in(Json& json, const std::string& master) {
  if (json.is_string()) replace_all(json.get_ref<std::string&>(), kMasterPlaceholder, master);
  if (json.is_structured())
    for (Json& child : json) replace_in(child, master);
}

/// The user and the seccomp profile are the job's container's; what its pod says holds for all containers anyway.
Json security_context(const Json& pod_template) {
  Json context = {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", {"ALL"}}}}};
  const Json* const container = training_container(pod_template);
  const Json* const own = container ? object_at(*container, "/securityContext") : nullptr;
  for (const char* key : {"runAsUser", "runAsGroup", "runAsNonRoot", "seccompProfile"})
    if (own && own->contains(key)) context[key] = own->at(key);
  const Json* const pods = object_at(pod_template, "/spec/securityContext");
  // A CRD of the reference lets other types than truth values through: the API refuses the pod then.
  const Json* const nonroot = find(context.contains("runAsNonRoot") || !pods ? context : *pods, "/runAsNonRoot");
  const bool is_nonroot = nonroot && *nonroot == true;
  const bool has_user = context.contains("runAsUser") || (pods && pods->contains("runAsUser"));
  if (is_nonroot && !has_user) context["runAsUser"] = kNobody;
  return context;
}

bool has_init_container(const Json& pod_template, const std::string& name) {
  const Json* const own = list_at(pod_template, "/spec/initContainers");
  return own && std::ranges::any_of(*own, [&](const Json& one) { return text_at(one, "/name") == name; });
}

Json usual_init_containers(const Json& pod_template, const std::string& master, const Settings& settings) {
  const std::string wait = fmt::format(
      "err=1;for i in $(seq {}); do if nslookup {}; then err=0 && break; fi;echo waiting for master; sleep 2; done; "
      "exit $err",
      settings.init_max_tries, master);
  return {{{"name", "init-pytorch"},
           {"image", settings.init_image},
           {"imagePullPolicy", "IfNotPresent"},
           {"command", {"sh", "-c", wait}},
           {"resources",
            {{"limits", {{"cpu", "100m"}, {"memory", "20Mi"}}}, {"requests", {{"cpu", "50m"}, {"memory", "10Mi"}}}}},
           {"securityContext", security_context(pod_template)}}};
}

}  // namespace

bool wants_init_container(const api::Job& job, const Replica& replica, const Settings& settings) {
  if (replica.type == api::ReplicaType::Master || !has_master(job)) return false;
  const std::string given = annotation_of(job, api::kInitContainerAnnotation);
  return given.empty() ? settings.init_container : given != "false";
}

Json init_containers(const api::Job& job, const Json& pod_template, const Settings& settings) {
  const std::string master = replica_name(job, api::ReplicaType::Master, 0);
  Json containers =
      settings.init_template ? *settings.init_template : usual_init_containers(pod_template, master, settings);
  replace_in(containers, master);
  Json wanted = Json::array();
  for (Json& container : containers)
    if (!has_init_container(pod_template, text_at(container, "/name"))) wanted.push_back(std::move(container));
  return wanted;
}

}  // namespace trainyard::decide
