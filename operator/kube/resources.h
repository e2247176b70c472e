#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/http.h"

// Where the API has the kinds that this operator handles.
namespace trainyard::kube {

struct Resource {
  const char* group;  ///< "" for the core group
  const char* version;
  const char* plural;
  const char* kind;
};

inline constexpr Resource kJobs{"kubeflow.org", "v1", "pytorchjobs", "PyTorchJob"};
inline constexpr Resource kPods{"", "v1", "pods", "Pod"};
inline constexpr Resource kServices{"", "v1", "services", "Service"};
inline constexpr Resource kSecrets{"", "v1", "secrets", "Secret"};
inline constexpr Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
inline constexpr Resource kEvents{"", "v1", "events", "Event"};
inline constexpr Resource kNodes{"", "v1", "nodes", "Node"};
inline constexpr Resource kNamespaces{"", "v1", "namespaces", "Namespace"};
inline constexpr Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease"};
inline constexpr Resource kAutoscalers{"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"};
inline constexpr Resource kNetworkPolicies{"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"};
inline constexpr Resource kVolcanoPodGroups{"scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup"};
inline constexpr Resource kSchedulerPluginsPodGroups{"scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup"};
inline constexpr Resource kValidatingWebhooks{"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",
                                              "ValidatingWebhookConfiguration"};
inline constexpr Resource kCustomResources{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                                           "CustomResourceDefinition"};

/// "v1", "kubeflow.org/v1"
[[nodiscard]] std::string api_version(const Resource& resource);
/// All of a namespace; `ns` "": of the whole cluster, or of a kind without namespaces.
[[nodiscard]] std::string collection_path(const Resource& resource, std::string_view ns = "");
[[nodiscard]] std::string object_path(const Resource& resource, std::string_view ns, std::string_view name,
                                      std::string_view subresource = "");

using Query = std::vector<std::pair<std::string_view, std::string>>;
/// Appends what is not empty of `query`, percent-encoded.
[[nodiscard]] std::string with_query(std::string path, const Query& query);
[[nodiscard]] std::string percent_encoded(std::string_view text);

/// A request in the API's own words, as RBAC and client-go's metrics name it.
struct RequestInfo {
  std::string verb;      ///< "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"
  std::string resource;  ///< "pods", "pytorchjobs/status"; "" where the path is none of a resource
};
[[nodiscard]] RequestInfo info_of(Method method, std::string_view path);

}  // namespace trainyard::kube
