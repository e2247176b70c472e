#include "local/pod_context.h"

#include <fmt/format.h>

#include "local/manifest/refusal.h"

namespace trainyard::local {
namespace {

/// "a, b": where an object of that name is, by keys as "a/name".
std::string namespaces_of(const std::map<std::string, Entries>& known, const std::string& name) {
  std::string namespaces;
  for (const auto& [key, entries] : known)
    if (key.substr(key.find('/') + 1) == name)
      namespaces += fmt::format("{}{}", namespaces.empty() ? "" : ", ", key.substr(0, key.find('/')));
  return namespaces;
}

const Entries* entries_of(const std::map<std::string, Entries>& known, const char* kind, const std::string& name,
                          const Json& reference, const PodContext& context) {
  const auto found = known.find(context.job.ns + "/" + name);
  if (found != known.end()) return &found->second;
  const Json* const optional = find(reference, "/optional");
  if (optional && optional->is_boolean() && optional->get<bool>()) return nullptr;
  if (const std::string elsewhere = namespaces_of(known, name); !elsewhere.empty())
    throw Refusal(
        fmt::format("pod {}: {} '{}' is in namespace {}, and the job in {}; a pod has only what is in its own: give "
                    "both the same metadata.namespace",
                    context.name(), kind, name, elsewhere, context.job.ns));
  throw Refusal(
      fmt::format("pod {}: {} '{}' is not in the input; add its manifest (-f takes several files, and `kubectl "
                  "kustomize DIR` prints "
                  "what it generates), or say `optional: true`",
                  context.name(), kind, name));
}

/// "x" of "metadata.labels['x']".
std::optional<std::string> subscript_of(const std::string& path, const std::string& map) {
  const std::string begin = map + "['";
  if (!path.starts_with(begin) || !path.ends_with("']")) return std::nullopt;
  return path.substr(begin.size(), path.size() - begin.size() - 2);
}

std::string lines_of(const Json* texts) {
  std::string lines;
  if (texts)
    for (const auto& [key, value] : texts->items()) lines += fmt::format("{}={}\n", key, value.dump());
  return lines;
}

}  // namespace

const Entries* PodContext::config_map(const Json& reference) const {
  return entries_of(input.config_maps, "ConfigMap", text_at(reference, "/name"), reference, *this);
}

const Entries* PodContext::secret(const Json& reference, const char* name_key) const {
  return entries_of(input.secrets, "Secret", text_at(reference, std::string("/") + name_key), reference, *this);
}

std::string field_at(const std::string& path, const PodContext& context) {
  for (const std::string map : {"labels", "annotations"}) {
    const Json* const texts = find(context.pod, "/metadata/" + map);
    if (path == "metadata." + map) return lines_of(texts);
    if (const auto key = subscript_of(path, "metadata." + map))
      return texts && texts->contains(*key) ? texts->at(*key).get<std::string>() : "";
  }
  if (path == "metadata.name") return context.name();
  if (path == "metadata.namespace") return context.job.ns;
  if (path == "metadata.uid") return text_at(context.pod, "/metadata/uid");
  if (path == "spec.nodeName") return context.node;
  if (path == "spec.serviceAccountName") return text_at(context.pod, "/spec/serviceAccountName", "default");
  if (path == "status.hostIP" || path == "status.podIP" || path == "status.hostIPs" || path == "status.podIPs")
    return "127.0.0.1";
  throw Refusal(
      fmt::format("pod {}: fieldRef '{}' is unknown; metadata.name, .namespace, .uid, .labels['x'], .annotations['x'], "
                  "spec.nodeName, "
                  "spec.serviceAccountName, status.podIP and status.hostIP are there",
                  context.name(), path));
}

}  // namespace trainyard::local
