#include "kube/resources.h"

#include <catch2/catch.hpp>

namespace trainyard::kube {
namespace {

TEST_CASE("paths are the API's, names percent-encoded", "[kube]") {
  CHECK(collection_path(kPods) == "/api/v1/pods");
  CHECK(collection_path(kPods, "team-a") == "/api/v1/namespaces/team-a/pods");
  CHECK(object_path(kJobs, "ns", "llama", "status") == "/apis/kubeflow.org/v1/namespaces/ns/pytorchjobs/llama/status");
  CHECK(object_path(kNodes, "", "node-1") == "/api/v1/nodes/node-1");
  CHECK(object_path(kLeases, "ns", "../../secrets/x") ==
        "/apis/coordination.k8s.io/v1/namespaces/ns/leases/..%2F..%2Fsecrets%2Fx");
  CHECK(object_path(kPods, "ns", "..") == "/api/v1/namespaces/ns/pods/%2E%2E");
  CHECK(api_version(kVolcanoPodGroups) == "scheduling.volcano.sh/v1beta1");
}

TEST_CASE("queries leave out what is empty and encode the rest", "[kube]") {
  CHECK(with_query("/api/v1/pods", {{"limit", "500"}, {"continue", ""}, {"labelSelector", "a=b,c in (d)"}}) ==
        "/api/v1/pods?limit=500&labelSelector=a%3Db%2Cc%20in%20%28d%29");
  CHECK(with_query("/x?a=1", {{"b", "2"}}) == "/x?a=1&b=2");
}

TEST_CASE("requests are named as RBAC does", "[kube]") {
  const auto named = [](Method method, const std::string& path) {
    const RequestInfo info = info_of(method, path);
    return info.verb + " " + info.resource;
  };
  CHECK(named(Method::Get, "/api/v1/pods?limit=500") == "list pods");
  CHECK(named(Method::Get, "/api/v1/namespaces/team/pods?watch=true&resourceVersion=1") == "watch pods");
  CHECK(named(Method::Get, "/apis/kubeflow.org/v1/namespaces/team/pytorchjobs/llama") == "get pytorchjobs");
  CHECK(named(Method::Patch, "/apis/kubeflow.org/v1/namespaces/team/pytorchjobs/llama/status") ==
        "patch pytorchjobs/status");
  CHECK(named(Method::Post, "/api/v1/namespaces/team/services") == "create services");
  CHECK(named(Method::Put, "/apis/coordination.k8s.io/v1/namespaces/team/leases/x") == "update leases");
  CHECK(named(Method::Delete, "/api/v1/namespaces/team/pods/a?x=1") == "delete pods");
  CHECK(named(Method::Get, "/api/v1/namespaces/team") == "get namespaces");
  CHECK(named(Method::Get, "/version") == "list ");
}

}  // namespace
}  // namespace trainyard::kube
