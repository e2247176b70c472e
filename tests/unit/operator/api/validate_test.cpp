#include "api/validate.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "unit/operator/api/samples.h"

namespace trainyard::api {
namespace {

Json patched(const char* patch) {
  Json json = sample_job();
  json.merge_patch(Json::parse(patch));
  return json;
}

std::string said(const char* patch) {
  return validate(patched(patch), nullptr).message();
}

std::string said_on_update(const char* old_patch, const char* patch) {
  const Json old_job = patched(old_patch);
  return validate(patched(patch), &old_job).message();
}

const std::string k54 = "a23456789-123456789-123456789-123456789-123456789-1234";

std::string named(const std::string& name, int workers) {
  return Json{{"metadata", {{"name", name}}},
              {"spec", {{"pytorchReplicaSpecs", {{"Worker", {{"replicas", workers}}}}}}}}
      .dump();
}

}  // namespace

TEST_CASE("validate: a job whose last service's name is too long is refused", "[api]") {
  CHECK(said(named(k54, 10).c_str()).empty());
  CHECK(said(named(k54, 11).c_str()) ==
        "metadata.name: Invalid value: \"" + k54 +
            "\": must be no more than 53 characters, since a service's name has no more than 63 and this job needs one "
            "called \"" +
            k54 + "-worker-10\"; \"" + k54.substr(0, 53) + "\" would do");
}

TEST_CASE("validate: an elastic job counts by the workers that it may grow to", "[api]") {
  Json json = Json::parse(named(k54, 2));
  json["spec"]["elasticPolicy"] = {{"minReplicas", 1}, {"maxReplicas", 11}};
  CHECK_FALSE(said(json.dump().c_str()).empty());
}

TEST_CASE("validate: an elastic minimum above the maximum is refused", "[api]") {
  CHECK(said(R"({"spec": {"elasticPolicy": {"minReplicas": 5, "maxReplicas": 2}}})") ==
        "spec.elasticPolicy.minReplicas: Invalid value: 5: must be no more than spec.elasticPolicy.maxReplicas, 2");
}

TEST_CASE("validate: what was wrong before our own rules stays changeable", "[api]") {
  const char* const wrong = R"({"spec": {"elasticPolicy": {"minReplicas": 5, "maxReplicas": 2}}})";
  CHECK(said_on_update(wrong, wrong).empty());
  CHECK_FALSE(said_on_update("{}", wrong).empty());
}

namespace {

/// Below the Worker's pod template: {"hostNetwork": true, "containers": [...]}.
Json with_worker_pod(const char* patch) {
  Json job = sample_job();
  job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"].merge_patch(Json::parse(patch));
  return job;
}

struct PodRow {
  const char* situation;
  const char* pod;
  const char* said;  // behind "spec.pytorchReplicaSpecs[Worker].template.spec."; "" where it is accepted
};

void check_pod_row(const PodRow& row) {
  CAPTURE(row.situation);
  const std::string before = "spec.pytorchReplicaSpecs[Worker].template.spec.";
  CHECK(validate(with_worker_pod(row.pod), nullptr).message() == (*row.said == '\0' ? "" : before + row.said));
}

}  // namespace

TEST_CASE("validate: containers that no pod can have are refused in the job, in the API server's words", "[api]") {
  check_pod_row(GENERATE(values<PodRow>({
      {"a sidecar with a probe", R"({"initContainers": [{"name": "a", "image": "i", "restartPolicy": "Always",
        "startupProbe": {"exec": {"command": ["true"]}}, "lifecycle": {}}]})", ""},
      {"an init container with a probe", R"({"initContainers": [{"name": "a", "image": "i",
        "startupProbe": {"exec": {"command": ["true"]}}}]})",
       "initContainers[0].startupProbe: Forbidden: may not be set for init containers without restartPolicy=Always"},
      {"a name that is no label", R"({"initContainers": [{"name": "Log_1", "image": "i"}]})",
       "initContainers[0].name: Invalid value: \"Log_1\": a lowercase RFC 1123 label must consist of lower case "
       "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or "
       "'123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
      {"two sub-paths of one mount", R"({"volumes": [{"name": "v", "emptyDir": {}}], "initContainers": [{"name": "a",
        "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "x", "subPathExpr": "y"}]}]})",
       R"(initContainers[0].volumeMounts[0].subPathExpr: Invalid value: "y": subPathExpr and subPath are mutually )"
       "exclusive"},
  })));
}

TEST_CASE("validate: fields that no pod can have are refused in the job, in the API server's words", "[api]") {
  check_pod_row(GENERATE(values<PodRow>({
      {"requests below limits, a GPU, huge pages, a domain of one's own", R"({"initContainers": [{"name": "a", "image": "i",
        "resources": {"limits": {"cpu": "2", "nvidia.com/gpu": 8, "hugepages-2Mi": "4Mi", "example.com/fpga": "1"},
        "requests": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "8", "hugepages-2Mi": "4Mi"}}}]})", ""},
      {"a request above its limit", R"({"initContainers": [{"name": "a", "image": "i", "resources":
        {"limits": {"memory": "1Gi"}, "requests": {"memory": "1025Mi"}}}]})",
       R"(initContainers[0].resources.requests: Invalid value: "1025Mi": must be less than or equal to memory limit of )"
       "1Gi"},
      {"GPUs that are only asked for", R"({"initContainers": [{"name": "a", "image": "i", "resources": {"requests":
        {"nvidia.com/gpu": 1}}}]})",
       "initContainers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"},
      {"a resource without its domain", R"({"initContainers": [{"name": "a", "image": "i", "resources": {"limits":
        {"gpu": 1}}}]})",
       R"(initContainers[0].resources.limits[gpu]: Invalid value: "gpu": must be a standard resource for containers)"},
      {"a mount of a volume that a webhook may add", R"({"initContainers": [{"name": "a", "image": "i", "volumeMounts": [{"name": "v",
        "mountPath": "/v"}]}]})",
       ""},
      {"a volume of two kinds", R"({"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/a"}}]})",
       "volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"},
      {"a volume of a newer kind", R"({"volumes": [{"name": "v", "quantum": {}}]})", ""},
      {"a probe without a handler", R"({"initContainers": [{"name": "a", "image": "i", "restartPolicy": "Always",
        "startupProbe": {"periodSeconds": 1}}]})",
       "initContainers[0].startupProbe: Required value: must specify a handler type"},
      {"any taint", R"({"tolerations": [{"operator": "Exists"}, {"key": "a.b/c", "value": "d", "effect": "NoExecute",
        "tolerationSeconds": 5}]})", ""},
      {"users, groups and a spread", R"({"securityContext": {"runAsUser": 0, "runAsGroup": 2147483647, "fsGroup": 1,
        "supplementalGroups": [5]}, "ephemeralContainers": [], "topologySpreadConstraints": [{"maxSkew": 1,
        "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}]})", ""},
      {"a user below 0", R"({"initContainers": [{"name": "a", "image": "i", "securityContext": {"runAsUser": -1}}]})",
       "initContainers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"},
      {"a group of 32 bits", R"({"securityContext": {"supplementalGroups": [5, 2147483648]}})",
       "securityContext.supplementalGroups[1]: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive"},
      {"a container that may come only later", R"({"ephemeralContainers": [{"name": "a", "image": "i"}]})",
       "ephemeralContainers: Forbidden: cannot be set on create"},
      {"a spread of no skew", R"({"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "a",
        "whenUnsatisfiable": "DoNotSchedule"}]})",
       "topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"},
      {"domains without need", R"({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "a", "minDomains": 2,
        "whenUnsatisfiable": "ScheduleAnyway"}]})",
       "topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use minDomains if "
       "whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"},
      {"a toleration of no value", R"({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]})",
       R"(tolerations[0].operator: Invalid value: "b": value must be empty when `operator` is 'Exists')"},
  })));
}

TEST_CASE("validate: ports that no pod or service can have are refused in the job, in the API server's words",
          "[api]") {
  check_pod_row(GENERATE(values<PodRow>({
      {"the meeting port under another name", R"({"containers": [{"name": "pytorch", "image": "i",
        "ports": [{"containerPort": 23456, "name": "c10d"}]}]})", ""},
      {"the same on the host's network", R"({"hostNetwork": true, "containers": [{"name": "pytorch", "image": "i",
        "ports": [{"containerPort": 23456, "name": "c10d"}]}]})", ""},
      {"ports without names", R"({"containers": [{"name": "pytorch", "image": "i",
        "ports": [{"containerPort": 6006}, {"containerPort": 6007}]}]})", ""},
      {"UDP and TCP on one number", R"({"containers": [{"name": "pytorch", "image": "i",
        "ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]}]})", ""},
      {"one number in two containers", R"({"containers": [{"name": "pytorch", "image": "i",
        "ports": [{"containerPort": 80}]}, {"name": "b", "image": "i", "ports": [{"containerPort": 80}]}]})", ""},
      {"one host port on two addresses", R"({"containers": [{"name": "pytorch", "image": "i", "ports": [
        {"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"},
        {"containerPort": 81, "hostPort": 80, "hostIP": "10.0.0.2"}]}]})", ""},
      {"one host port in two init containers, which run one after the other", R"({"initContainers": [
        {"name": "a", "image": "i", "ports": [{"containerPort": 1, "hostPort": 80}]},
        {"name": "b", "image": "i", "ports": [{"containerPort": 1, "hostPort": 80}]}]})", ""},
      {"another host port of an init container on the host's network", R"({"hostNetwork": true, "initContainers": [
        {"name": "a", "image": "i", "ports": [{"containerPort": 80, "hostPort": 81}]}]})", ""},
      {"one number twice", R"({"containers": [{"name": "pytorch", "image": "i",
        "ports": [{"containerPort": 80}, {"containerPort": 80, "name": "web"}]}]})",
       R"(containers[0].ports[1]: Duplicate value: {"containerPort":80,"protocol":"TCP"})"},
      {"one name twice", R"({"containers": [{"name": "pytorch", "image": "i",
        "ports": [{"containerPort": 80, "name": "web"}, {"containerPort": 81, "name": "web"}]}]})",
       R"(containers[0].ports[1].name: Duplicate value: "web")"},
      {"no number", R"({"containers": [{"name": "pytorch", "image": "i", "ports": [{"containerPort": 0}]}]})",
       "containers[0].ports[0].containerPort: Required value"},
      {"a number too large", R"({"containers": [{"name": "pytorch", "image": "i",
        "ports": [{"containerPort": 65536}]}]})",
       "containers[0].ports[0].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive"},
      {"a host port below 0", R"({"containers": [{"name": "pytorch", "image": "i",
        "ports": [{"containerPort": 80, "hostPort": -1}]}]})",
       "containers[0].ports[0].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive"},
      {"a protocol that is none", R"({"containers": [{"name": "pytorch", "image": "i",
        "ports": [{"containerPort": 80, "protocol": "tcp"}]}]})",
       R"(containers[0].ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP")"},
      {"a name too long", R"({"containers": [{"name": "pytorch", "image": "i",
        "ports": [{"containerPort": 80, "name": "a-sixteen-letter"}]}]})",
       R"(containers[0].ports[0].name: Invalid value: "a-sixteen-letter": must be no more than 15 characters)"},
      {"a name in capitals", R"({"containers": [{"name": "pytorch", "image": "i",
        "ports": [{"containerPort": 80, "name": "wEb"}]}]})",
       R"(containers[0].ports[0].name: Invalid value: "wEb": must contain only alpha-numeric characters (a-z, 0-9), )"
       "and hyphens (-)"},
      {"a name of digits", R"({"initContainers": [{"name": "a", "image": "i",
        "ports": [{"containerPort": 80, "name": "80"}]}]})",
       R"(initContainers[0].ports[0].name: Invalid value: "80": must contain at least one letter (a-z))"},
      {"a name with two hyphens", R"({"containers": [{"name": "pytorch", "image": "i",
        "ports": [{"containerPort": 80, "name": "a--b"}]}]})",
       R"(containers[0].ports[0].name: Invalid value: "a--b": must not contain consecutive hyphens)"},
      {"a name that ends with a hyphen", R"({"containers": [{"name": "pytorch", "image": "i",
        "ports": [{"containerPort": 80, "name": "a-"}]}]})",
       R"(containers[0].ports[0].name: Invalid value: "a-": must not begin or end with a hyphen)"},
      {"another host port on the host's network", R"({"hostNetwork": true, "containers": [{"name": "pytorch",
        "image": "i", "ports": [{"containerPort": 80, "hostPort": 81}]}]})",
       "containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"},
      {"one host port twice", R"({"containers": [
        {"name": "pytorch", "image": "i", "ports": [{"containerPort": 80, "hostPort": 8080}]},
        {"name": "b", "image": "i", "ports": [{"containerPort": 90, "hostPort": 8080}]}]})",
       R"(containers[1].ports[0].hostPort: Duplicate value: "TCP//8080")"},
      {"the appended port is another container's on the host's network", R"({"hostNetwork": true, "containers": [
        {"name": "pytorch", "image": "i"}, {"name": "b", "image": "i", "ports": [{"containerPort": 23456}]}]})",
       R"(containers[1].ports[0].hostPort: Duplicate value: "TCP//23456"; the ranks meet at 23456 where container )"
       "pytorch has no port called pytorchjob-port: give it one with another number"},
  })));
}

TEST_CASE("validate: names and variables that no pod can have are refused in the job, in the API server's words",
          "[api]") {
  check_pod_row(GENERATE(values<PodRow>({
      {"an empty value with valueFrom", R"({"containers": [{"name": "pytorch", "image": "i", "env": [
        {"name": "A", "value": "", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}]})", ""},
      {"a value with valueFrom: null", R"({"containers": [{"name": "pytorch", "image": "i", "env": [
        {"name": "A", "value": "1", "valueFrom": null}]}]})", ""},
      {"one variable twice", R"({"containers": [{"name": "pytorch", "image": "i", "env": [
        {"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}]})", ""},
      {"a value with valueFrom", R"({"containers": [{"name": "pytorch", "image": "i", "env": [
        {"name": "A"}, {"name": "B", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}]})",
       R"(containers[0].env[1].valueFrom: Invalid value: "": may not be specified when `value` is not empty)"},
      {"the same in an init container", R"({"initContainers": [{"name": "a", "image": "i", "env": [
        {"name": "B", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}]})",
       R"(initContainers[0].env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty)"},
      {"two sources", R"({"containers": [{"name": "pytorch", "image": "i", "env": [{"name": "B", "valueFrom":
        {"fieldRef": {"fieldPath": "metadata.name"}, "secretKeyRef": {"name": "s", "key": "k"}}}]}]})",
       R"(containers[0].env[0].valueFrom: Invalid value: "": may not have more than one field specified at a time)"},
      {"no source", R"({"containers": [{"name": "pytorch", "image": "i", "env": [{"name": "B", "valueFrom": {}}]}]})",
       R"(containers[0].env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, )"
       "`configMapKeyRef` or `secretKeyRef`"},
      {"two containers of one name", R"({"containers": [{"name": "pytorch", "image": "i"},
        {"name": "b", "image": "i"}, {"name": "b", "image": "i"}]})",
       R"(containers[2].name: Duplicate value: "b")"},
      {"an init container with a container's name", R"({"initContainers": [{"name": "pytorch", "image": "i"}]})",
       R"(initContainers[0].name: Duplicate value: "pytorch")"},
  })));
}

TEST_CASE("validate: a job whose pods broke a rule before the rule came stays changeable", "[api]") {
  const Json good = with_worker_pod("{}"), bad = with_worker_pod(R"({"containers": [{"name": "pytorch", "image": "i",
      "ports": [{"containerPort": 80, "name": "UP"}]}]})");
  CHECK_FALSE(validate(bad, &good).is_allowed());
  Json labelled = bad;
  labelled["metadata"]["labels"] = {{"a", "b"}};
  CHECK(validate(labelled, &bad).is_allowed());
  CHECK(validate(good, &bad).is_allowed());
}

TEST_CASE("validate: managedBy can be neither set, nor changed, nor removed", "[api]") {
  const char* const kueue = R"({"spec": {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}})";
  const char* const own = R"({"spec": {"runPolicy": {"managedBy": "kubeflow.org/training-operator"}}})";
  CHECK(said_on_update(kueue, kueue).empty());
  CHECK(said_on_update("{}", kueue) ==
        "spec.runPolicy.managedBy: Invalid value: \"kueue.x-k8s.io/multikueue\": field is immutable");
  CHECK(said_on_update(kueue, own) ==
        "spec.runPolicy.managedBy: Invalid value: \"kubeflow.org/training-operator\": field is immutable");
  CHECK(said_on_update(kueue, "{}") == "spec.runPolicy.managedBy: Invalid value: null: field is immutable");
}

TEST_CASE("validate: the queue can be set, but neither changed nor removed", "[api]") {
  const char* const day = R"({"spec": {"runPolicy": {"schedulingPolicy": {"queue": "day"}}}})";
  const char* const night = R"({"spec": {"runPolicy": {"schedulingPolicy": {"queue": "night"}}}})";
  CHECK(said_on_update("{}", day).empty());
  CHECK(said_on_update(day, day).empty());
  CHECK(said_on_update(day, night) ==
        "spec.runPolicy.schedulingPolicy.queue: Invalid value: \"night\": spec.runPolicy.schedulingPolicy.queue is "
        "immutable");
  CHECK_FALSE(said_on_update(day, R"({"spec": {"runPolicy": {"schedulingPolicy": {}}}})").empty());
  CHECK_FALSE(said_on_update(day, "{}").empty());
}

TEST_CASE("validate: a replica or template that is null or of another type is refused, not followed", "[api]") {
  for (const char* const text :
       {"null", "[]", "7", R"({"spec": 7})", R"({"spec": {"pytorchReplicaSpecs": {"Worker": null}}})",
        R"({"spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [1, null]}}}}}})"})
    CHECK_FALSE(validate(Json::parse(text), nullptr).is_allowed());
  CHECK(said(R"({"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 3000000000}}}})").find("no more than") !=
        std::string::npos);
}

TEST_CASE("validate: a bad name is answered with a legal one made from it", "[api]") {
  const std::pair<const char*, const char*> rows[] = {
      {"qwen3_0_6b-FSDP2", "qwen3-0-6b-fsdp2"},
      {"Bad", "bad"},
      {"my.job", "my-job"},
      {"-a--b_-_c-", "a-b-c"},
      {"7b-run", "job-7b-run"},
      {"_", "job"},
      {"L\u00e4ufer", "l-ufer"},
      {"", "job"},
  };
  for (const auto& [name, legal] : rows) {
    INFO(name);
    const std::string patch = std::string(R"({"metadata": {"name": ")") + name + "\"}}";
    CHECK(said(patch.c_str()).ends_with(std::string("; \"") + legal + "\" would do"));
    CHECK(said(named(legal, 3).c_str()).empty());
  }
}

TEST_CASE("validate: a name that is too long is answered with as much of it as the job's services leave", "[api]") {
  const std::string told = said(named(k54 + "-56789-12345", 1000).c_str());  // 66, and illegal by itself
  const std::string legal = k54.substr(0, 52);  // "-worker-999" behind it
  CHECK(told.ends_with("; \"" + legal + "\" would do"));
  CHECK(said(named(legal, 1000).c_str()).empty());
  CHECK(said(named(k54, 100'000).c_str()).ends_with("; \"" + k54.substr(0, 49) + "\" would do"));
}

TEST_CASE("validate: a name that the API server will make up is not judged", "[api]") {
  CHECK(said(R"({"metadata": {"name": null, "generateName": "run-"}})").empty());
}

TEST_CASE("validate: a number of replicas that no cluster holds is refused", "[api]") {
  CHECK(said(R"({"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 100000}}}})").empty());
  CHECK(said(R"({"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 100001}}}})") ==
        "spec.pytorchReplicaSpecs[Worker].replicas: Invalid value: 100001: must be no more than 100000");
}

TEST_CASE("validate: words and numbers that mean nothing draw a warning with what is known", "[api]") {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"spec": {"runPolicy": {"cleanPodPolicy": "Some"}}})",
       R"(spec.runPolicy.cleanPodPolicy: "Some" is not known; None, Running, All are)"},
      {R"({"spec": {"runPolicy": {"backoffLimit": -1}}})",
       "spec.runPolicy.backoffLimit: -1 is negative; 0 and more are meant"},
      {R"({"spec": {"nprocPerNode": "many"}})",
       R"(spec.nprocPerNode: "many" is not known; auto, cpu, gpu and whole numbers are)"},
      {R"({"spec": {"elasticPolicy": {"rdzvBackend": "zookeeper"}}})",
       R"(spec.elasticPolicy.rdzvBackend: "zookeeper" is not known; c10d, etcd, etcd-v2 are)"},
      {R"({"spec": {"pytorchReplicaSpecs": {"Worker": {"restartPolicy": "Maybe"}}}})",
       R"(spec.pytorchReplicaSpecs[Worker].restartPolicy: "Maybe" is not known; Always, OnFailure, Never, ExitCode are)"},
      {R"({"metadata": {"annotations": {"trainyard.dev/restart-scope": "all"}}})",
       R"(metadata.annotations[trainyard.dev/restart-scope]: "all" is not known; gang, replica are)"},
      {R"({"metadata": {"annotations": {"trainyard.dev/progress-deadline-seconds": "soon"}}})",
       R"(metadata.annotations[trainyard.dev/progress-deadline-seconds]: "soon" is no whole number of seconds above 0)"},
  };
  for (const auto& [patch, remark] : rows) {
    const Verdict verdict = validate(patched(patch), nullptr);
    CHECK(verdict.is_allowed());
    CHECK(std::ranges::count(verdict.warnings, remark) == 1);
  }
  for (const char* const good : {R"({"spec": {"nprocPerNode": "8", "runPolicy": {"cleanPodPolicy": "All"}}})",
                                 R"({"metadata": {"annotations": {"trainyard.dev/init-container": "false"}}})"})
    for (const std::string& warning : validate(patched(good), nullptr).warnings)
      CHECK_THAT(warning, Catch::Contains("deprecated"));
}

TEST_CASE("validate: an elastic job of a size that its own policy rules out draws a warning", "[api]") {
  const auto warned = [](const char* policy, int workers) {
    Json job = patched("{}");
    job["spec"]["elasticPolicy"] = Json::parse(policy);
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = workers;
    const Verdict verdict = validate(job, nullptr);
    CHECK(verdict.is_allowed());
    CHECK(verdict.warnings.size() <= 1);
    return verdict.warnings.empty() ? std::string() : verdict.warnings.front();
  };
  const std::string before = "spec.pytorchReplicaSpecs[Worker].replicas: ";
  const char* const two_to_four = R"({"minReplicas": 2, "maxReplicas": 4})";
  CHECK(warned(two_to_four, 5) == before + "5 is outside of spec.elasticPolicy; 2 to 4 are meant");
  CHECK(warned(two_to_four, 1) == before + "1 is outside of spec.elasticPolicy; 2 to 4 are meant");
  CHECK(warned(R"({"maxReplicas": 3})", 4) == before + "4 is outside of spec.elasticPolicy; 3 to 3 are meant");
  for (const int workers : {2, 3, 4}) CHECK(warned(two_to_four, workers).empty());
  CHECK(warned("{}", 7).empty());
}

TEST_CASE("validate: a job that was scaled to 0 can still be labelled, and no other can be scaled to it", "[api]") {
  const char* const none = R"({"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 0}}}})";
  CHECK(said_on_update(none, none).empty());
  CHECK(said_on_update("{}", none) == "spec.pytorchReplicaSpecs[Worker].replicas: Forbidden: must be at least 1");
  CHECK_FALSE(said(none).empty());
}

}  // namespace trainyard::api
