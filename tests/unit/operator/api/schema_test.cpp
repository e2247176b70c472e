#include <catch2/catch.hpp>

#include "api/crd.h"
#include "api/job.h"
#include "api/schema_check.h"
#include "unit/operator/api/samples.h"

namespace trainyard::api {
namespace {

using Catch::Matchers::Contains;

Verdict verdict_on(const char* patch) {
  Json json = sample_job();
  json.merge_patch(Json::parse(patch));
  return validate_schema(json);
}

/// Calls `visit` with every schema below `schema` and its path.
template <typename Visit>
void walk(const Json& schema, const std::string& path, const Visit& visit) {
  visit(schema, path);
  if (const Json* const properties = object_at(schema, "/properties"))
    for (const auto& [name, property] : properties->items()) walk(property, path + "." + name, visit);
  for (const char* const inner : {"/items", "/additionalProperties"})
    if (const Json* const found = object_at(schema, inner)) walk(*found, path + inner, visit);
}

}  // namespace

TEST_CASE("crd: names, subresources and printer columns are the contract's", "[api]") {
  const Json& version = crd()["spec"]["versions"][0];
  CHECK(crd()["metadata"]["name"] == "pytorchjobs.kubeflow.org");
  CHECK(version["subresources"]["scale"]["specReplicasPath"] == ".spec.pytorchReplicaSpecs.Worker.replicas");
  CHECK(version["subresources"]["scale"]["statusReplicasPath"] == ".status.replicaStatuses.Worker.active");
  CHECK(version["subresources"]["scale"]["labelSelectorPath"] == ".status.replicaStatuses.Worker.selector");
  CHECK(version["subresources"].contains("status"));
  std::vector<std::string> columns;
  for (const Json& column : version["additionalPrinterColumns"]) columns.push_back(column["name"]);
  CHECK(columns == std::vector<std::string>{"State", "Age", "Step", "Loss", "Tokens/s", "ETA", "Restarts",
                                           "Disruptions", "Ready", "Checkpoint", "Trouble"});
  CHECK(find(job_schema(), "/properties/spec/properties/runPolicy/properties/suspend/default")->get<bool>() == false);
}

TEST_CASE("crd: it fits into the annotation of a client-side apply, with room to spare", "[api]") {
  CHECK(dump(crd()).size() < 100'000);
}

TEST_CASE("crd: every field of ours is described", "[api]") {
  walk(job_schema(), "", [](const Json& schema, const std::string& path) {
    const bool is_foreign = path.find(".template.spec.") != path.npos || path.find(".metrics/items") != path.npos ||
                            path.find("minResources/") != path.npos || path == ".metadata";
    const bool is_item = path.ends_with("/items") || path.ends_with("/additionalProperties");
    INFO(path);
    CHECK((is_foreign || is_item || !text_at(schema, "/description").empty()));
  });
}

TEST_CASE("crd: the schema is structural: every level has a type, none forbids with additionalProperties", "[api]") {
  walk(job_schema(), "", [](const Json& schema, const std::string& path) {
    INFO(path);
    CHECK((schema.contains("type") || schema.contains("x-kubernetes-int-or-string") ||
           schema.contains("x-kubernetes-preserve-unknown-fields")));
    CHECK_FALSE((schema.contains("properties") && schema.contains("additionalProperties")));
  });
}

TEST_CASE("crd: every field that a status is written with is in the schema, or it would be dropped", "[api]") {
  const Json& schema = *find(job_schema(), "/properties/status");
  const Verdict verdict = check_schema(to_json(full_status()), schema, "status");
  INFO(verdict.message());
  CHECK(verdict.is_allowed());
  CHECK(verdict.warnings.empty());
}

TEST_CASE("validate_schema: a wrong value names its path, what it is and what is allowed", "[api]") {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"apiVersion": "kubeflow.org/v2"})", "apiVersion: must be kubeflow.org/v1, but is \"kubeflow.org/v2\""},
      {R"({"kind": "TFJob"})", "kind: must be PyTorchJob, but is \"TFJob\""},
      {R"({"metadata": null})", "metadata.name: is missing, but required"},
      {R"({"metadata": {"labels": {"a": 1}}})", R"(metadata.labels.a: must be a text, but is 1; write "1")"},
      {R"({"spec": {"nprocPerNode": 4}})", R"(spec.nprocPerNode: must be a text, but is 4; write "4")"},
      {R"({"spec": {"runPolicy": {"suspend": "true"}}})",
       "spec.runPolicy.suspend: must be true or false, but is \"true\""},
      {R"({"spec": {"runPolicy": {"cleanPodPolcy": "All"}}})",
       "spec.runPolicy.cleanPodPolcy: is no field of this resource; did you mean cleanPodPolicy?"},
      {R"({"spec": {"zzz": 1}})",
       "spec.zzz: is no field of this resource; known are elasticPolicy, nprocPerNode, pytorchReplicaSpecs, runPolicy"},
      {R"({"spec": {"runPolicy": {"schedulingPolicy": {"minResources": {"cpu": "lots"}}}}})",
       "spec.runPolicy.schedulingPolicy.minResources.cpu: must be a quantity such as 2, \"500m\" or \"16Gi\", but is "
       "\"lots\""},
      {R"({"spec": {"runPolicy": {"schedulingPolicy": {"minResources": {"cpu": 1.5}}}}})",
       "minResources.cpu: must be a whole number or a text (in quotes where it has a fraction), but is 1.5"},
      {R"({"spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [
          {"name": "pytorch"}, {"name": "pytorch"}]}}}}}})",
       "spec.pytorchReplicaSpecs.Worker.template.spec.containers[1]: is there twice: an entry with "
       "{\"name\":\"pytorch\"} stands above"},
  };
  for (const auto& [patch, message] : rows) CHECK_THAT(verdict_on(patch).message(), Contains(message));
}

namespace {

Json with_pod_spec(const char* patch) {
  Json job = sample_job();
  Json& pod_template = job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"];
  pod_template["spec"].merge_patch(Json::parse(patch));
  return job;
}

}  // namespace

TEST_CASE("pod templates: a misspelt field is refused with the name that is meant, by the webhook and offline", "[api]") {
  struct Row {
    const char *patch, *path, *meant;
  };
  const Row rows[] = {
      {R"({"nodeSelecter": {"a": "b"}})", "nodeSelecter", "nodeSelector"},
      {R"({"nodeselector": {"a": "b"}})", "nodeselector", "nodeSelector"},
      {R"({"hsotNetwork": true})", "hsotNetwork", "hostNetwork"},
      {R"({"priorityClass": "high"})", "priorityClass", "priorityClassName"},
      {R"({"containers": [{"name": "pytorch", "image": "i", "comand": ["x"]}]})", "containers[0].comand", "command"},
      {R"({"containers": [{"name": "pytorch", "image": "i", "resourcs": {}}]})", "containers[0].resourcs", "resources"},
      {R"({"containers": [{"name": "pytorch", "image": "i", "image_pull_policy": "Never"}]})",
       "containers[0].image_pull_policy", "imagePullPolicy"},
      {R"({"containers": [{"name": "pytorch", "image": "i", "env": [{"name": "A", "valu": "1"}]}]})",
       "containers[0].env[0].valu", "value"},
      {R"({"containers": [{"name": "pytorch", "image": "i", "resources": {"limit": {}}}]})",
       "containers[0].resources.limit", "limits"},
      {R"({"volumes": [{"name": "v", "emptyDir": {"sizelimit": "1Gi"}}]})", "volumes[0].emptyDir.sizelimit", "sizeLimit"},
      {R"({"initContainers": [{"name": "a", "volumeMount": []}]})", "initContainers[0].volumeMount", "volumeMounts"},
  };
  for (const auto& [patch, path, meant] : rows) {
    INFO(patch);
    const Json job = with_pod_spec(patch);
    const std::string rest = std::string(path) + ": is no field of this resource; did you mean " + meant + "?";
    CHECK(validate(job, nullptr).message() == "spec.pytorchReplicaSpecs[Worker].template.spec." + rest);
    CHECK(validate_schema(job).message() == "spec.pytorchReplicaSpecs.Worker.template.spec." + rest);
  }
}

TEST_CASE("pod templates: a field that reads like one of a newer Kubernetes is passed on with a warning", "[api]") {
  for (const char* const field : {"fieldOfTheFuture", "restartPolicyRules", "hostnameSuffix", "schedulingGrants"}) {
    const Json job = with_pod_spec(Json{{field, {{"a", 1}}}}.dump().c_str());
    INFO(field);
    for (const Verdict& verdict : {validate(job, nullptr), validate_schema(job)}) {
      CHECK(verdict.is_allowed());
      REQUIRE(verdict.warnings.size() == 1);
      CHECK_THAT(verdict.warnings[0],
                 Contains(std::string(field) + ": is no field that is known here; it is passed on as it is"));
    }
  }
}

TEST_CASE("pod templates: keys of maps are no fields", "[api]") {
  const Json job = with_pod_spec(R"({"nodeSelector": {"comand": "x"}, "overhead": {"cpus": "1"},
      "containers": [{"name": "pytorch", "image": "i", "resources": {"limits": {"example.com/cpus": 1, "nvidia.com/gpus": 1}}}]})");
  CHECK(validate(job, nullptr).is_allowed());
  CHECK(validate(job, nullptr).warnings.empty());
}

TEST_CASE("pod templates: a job that has a misspelt field already stays changeable", "[api]") {
  const Json old_job = with_pod_spec(R"({"nodeSelecter": {"a": "b"}})");
  Json job = old_job;
  job["metadata"]["finalizers"] = Json::array();
  CHECK(validate(job, &old_job).is_allowed());
  job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["tolerationz"] = Json::array();
  CHECK_THAT(validate(job, &old_job).message(), Contains("did you mean tolerations?") && !Contains("nodeSelecter"));
}

TEST_CASE("check_schema: enum, minimum, maximum, pattern and nullable", "[api]") {
  const auto judged = [](const char* value, const char* schema) {
    return check_schema(Json::parse(value), Json::parse(schema), "x").message();
  };
  CHECK(judged("\"a\"", R"({"type": "string", "enum": ["a", "b"]})").empty());
  CHECK(judged("\"c\"", R"({"type": "string", "enum": ["a", "b"]})") == R"(x: must be one of "a", "b", but is "c")");
  CHECK(judged("0", R"({"type": "integer", "minimum": 1})") == "x: must be at least 1, but is 0");
  CHECK(judged("9", R"({"type": "integer", "maximum": 8})") == "x: must be at most 8, but is 9");
  CHECK(judged("\"b\"", R"({"type": "string", "pattern": "^a$"})") == R"(x: must be of the form ^a$, but is "b")");
  CHECK(judged("null", R"({"type": "string", "nullable": true})").empty());
  CHECK(judged("true", R"({"type": "string"})") == R"(x: must be a text, but is true; write "true")");
  CHECK(judged("null", R"({"type": "string"})") == "x: must be a text, but is null");
  CHECK(judged("3.0", R"({"type": "integer"})").empty());
}

}  // namespace trainyard::api
