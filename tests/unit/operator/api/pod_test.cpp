#include "api/pod.h"

#include <catch2/catch.hpp>

#include "api/kubelet_events.h"

namespace trainyard::api {

TEST_CASE("parse_pod: what decisions need arrives, the rest is dropped", "[api]") {
  const Pod pod = parse_pod(Json::parse(R"({
    "metadata": {"name": "llama-worker-1", "namespace": "team", "uid": "u1", "resourceVersion": "7",
      "labels": {"training.kubeflow.org/replica-index": "1", "app": "mine", "trainyard.dev/x": "y"},
      "annotations": {"trainyard.dev/generation": "3", "note": "long"},
      "deletionTimestamp": "2026-11-21T10:00:00Z", "deletionGracePeriodSeconds": 5,
      "ownerReferences": [{"kind": "Other", "name": "o", "uid": "o1"},
                          {"kind": "PyTorchJob", "name": "llama", "uid": "j1", "controller": true}]},
    "spec": {"nodeName": "node-7", "restartPolicy": "Never", "terminationGracePeriodSeconds": 60},
    "status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory", "startTime": "2026-11-21T09:00:00Z",
      "conditions": [
        {"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "True"},
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/9",
         "lastTransitionTime": "2026-11-21T09:00:01Z"},
        {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}],
      "initContainerStatuses": [{"name": "init-pytorch", "restartCount": 2,
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}],
      "containerStatuses": [{"name": "pytorch", "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled",
                                                                              "finishedAt": "2026-11-21T09:30:00Z"}}},
                            {"name": "side", "state": {"running": {}}}, {"name": "late"}]}})"));
  CHECK(pod.name == "llama-worker-1");
  CHECK(pod.uid == "u1");
  CHECK(pod.labels ==
        std::map<std::string, std::string>{{"training.kubeflow.org/replica-index", "1"}, {"trainyard.dev/x", "y"}});
  CHECK(pod.annotations == std::map<std::string, std::string>{{"trainyard.dev/generation", "3"}});
  REQUIRE(pod.controller);
  CHECK(pod.controller->uid == "j1");
  CHECK(pod.deleted == parse_time("2026-11-21T10:00:00Z"));
  CHECK(pod.grace_seconds == 5);
  CHECK(pod.phase == "Failed");
  CHECK(pod.reason == "Evicted");
  CHECK(pod.message == "low on memory");
  CHECK(pod.node == "node-7");
  CHECK(pod.started == parse_time("2026-11-21T09:00:00Z"));
  CHECK(pod.restart_policy == "Never");

  REQUIRE(pod.conditions.size() == 3);
  CHECK(pod.conditions[0].type == "Ready");
  CHECK(pod.conditions[0].status);
  CHECK(pod.conditions[1].reason == "Unschedulable");
  CHECK(pod.conditions[1].transitioned == parse_time("2026-11-21T09:00:01Z"));
  CHECK(pod.conditions[2].type == "DisruptionTarget");

  REQUIRE(pod.containers.size() == 4);
  CHECK(pod.containers[0].is_init);
  CHECK(pod.containers[0].restarts == 2);
  CHECK(pod.containers[0].state == ContainerState::Waiting);
  CHECK(pod.containers[0].message == "no such image");
  CHECK_FALSE(pod.containers[0].exit_code);
  CHECK_FALSE(pod.containers[0].ended);
  CHECK(pod.containers[1].state == ContainerState::Terminated);
  CHECK(pod.containers[1].exit_code == 137);
  CHECK(pod.containers[1].ended == parse_time("2026-11-21T09:30:00Z"));
  CHECK(pod.containers[1].reason == "OOMKilled");
  CHECK(pod.containers[2].state == ContainerState::Running);
  CHECK(pod.containers[3].state == ContainerState::Unknown);
}

TEST_CASE("parse_pod: the generation is found behind a container that a webhook put first", "[api]") {
  const Pod pod = parse_pod(Json::parse(R"({"spec": {"containers": [
    {"name": "sidecar", "env": [{"name": "A", "value": "1"}]},
    {"name": "pytorch", "env": [{"name": "WORLD_SIZE", "value": "9"}, {"name": "TRAINYARD_GENERATION", "value": "3"},
                                {"name": "WORLD_SIZE", "value": "2"}]}]}})"));
  CHECK(pod.generation == 3);
  CHECK(pod.world_size == "2");
}

TEST_CASE("parse_pod: an init container that is restarted in place is told from the others", "[api]") {
  const Pod pod = parse_pod(Json::parse(R"({
    "spec": {"initContainers": [{"name": "proxy", "restartPolicy": "Always"}, {"name": "fetch"}],
             "containers": [{"name": "pytorch"}]},
    "status": {"initContainerStatuses": [{"name": "proxy"}, {"name": "fetch"}],
               "containerStatuses": [{"name": "pytorch"}]}})"));
  REQUIRE(pod.containers.size() == 3);
  CHECK(pod.containers[0].is_restartable);
  CHECK_FALSE(pod.containers[1].is_restartable);
  CHECK_FALSE(pod.containers[2].is_restartable);
}

TEST_CASE("parse_pod: what is missing or of another type stays empty", "[api]") {
  for (const char* const text : {"{}", "[]", "null", R"({"spec": 1, "status": {"conditions": {}}, "metadata": []})",
                                 R"({"status": {"containerStatuses": [1, null, {"state": 3}], "conditions": [0]}})"}) {
    const Pod pod = parse_pod(Json::parse(text));
    CHECK(pod.name.empty());
    CHECK(pod.phase.empty());
    CHECK(pod.grace_seconds == 30);
    CHECK_FALSE(pod.deleted);
  }
}

TEST_CASE("parse_node: readiness, cordon, taints, resources and pressure", "[api]") {
  const Node node = parse_node(Json::parse(R"({
    "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}, "annotations": {"a": "b"}},
    "spec": {"unschedulable": true, "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "8", "memory": "63Gi"}, "conditions": [
      {"type": "MemoryPressure", "status": "False"}, {"type": "DiskPressure", "status": "True", "reason": "Full"},
      {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-11-21T10:00:00Z"}]}})"));
  CHECK(node.labels.at("kubernetes.io/hostname") == "n");
  CHECK(node.annotations.empty());
  CHECK(node.is_unschedulable);
  REQUIRE(node.taints.size() == 1);
  CHECK(node.taints[0].key == "gpu");
  CHECK(node.taints[0].effect == "NoSchedule");
  CHECK(node.allocatable.at("memory") == "63Gi");
  CHECK_FALSE(node.is_ready);
  CHECK(node.ready_since == parse_time("2026-11-21T10:00:00Z"));
  REQUIRE(node.bad_conditions.size() == 1);
  CHECK(node.bad_conditions[0].type == "DiskPressure");
}

TEST_CASE("parse_service, parse_pod_group, parse_autoscaler: metadata, phase and spec", "[api]") {
  const Json json = Json::parse(R"({"metadata": {"name": "x", "labels": {"a": "b"}},
    "spec": {"minMember": 3}, "status": {"phase": "Inqueue"}})");
  CHECK(parse_service(json).name == "x");
  CHECK(parse_service(json).labels.empty());
  CHECK(parse_pod_group(json).phase == "Inqueue");
  CHECK(parse_pod_group(json).spec == Json{{"minMember", 3}});
  CHECK(parse_autoscaler(json).spec == Json{{"minMember", 3}});
  CHECK(parse_pod_group(Json::object()).spec == Json::object());
}

TEST_CASE("last_warning: the newest, unless the kubelet went on, and what it may not read yet is no warning", "[api]") {
  const auto said = [](const char* items) {
    return last_warning(Json::parse(std::string(R"({"items": )") + items + "}"));
  };
  CHECK(said("[]").empty());
  CHECK(said(R"([{"type": "Warning", "message": "b", "lastTimestamp": "2026-11-21T10:00:02Z"},
                 {"type": "Warning", "message": "a", "lastTimestamp": "2026-11-21T10:00:01Z"}])") == "b");
  CHECK(said(R"([{"type": "Warning", "message": "a", "lastTimestamp": "2026-11-21T10:00:01Z"},
                 {"type": "Normal", "message": "Pulling image", "eventTime": "2026-11-21T10:00:02Z"}])").empty());
  const std::string unlinked =
      R"({"type": "Warning", "lastTimestamp": "2026-11-21T10:00:03Z", "message": "MountVolume.SetUp failed: )"
      R"(configmaps \"x\" is forbidden: no relationship found between node 'n' and this object"})";
  CHECK(said(("[" + unlinked + "]").c_str()).empty());
  const std::string missing = R"({"type": "Warning", "lastTimestamp": "2026-11-21T10:00:01Z", "message": "not found"})";
  CHECK(said(("[" + missing + "," + unlinked + "]").c_str()) == "not found");
}

}  // namespace trainyard::api
