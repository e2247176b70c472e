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
  CHECK(columns == std::vector<std::string>{"State", "Age", "Step", "Loss", "Tokens/s", "ETA", "Restarts"});
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
      {R"({"metadata": {"labels": {"a": 1}}})", "metadata.labels.a: must be a text, but is 1"},
      {R"({"spec": {"nprocPerNode": 4}})", "spec.nprocPerNode: must be a text, but is 4"},
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

TEST_CASE(
    "validate_schema: fields of a pod that are newer than the schema pass, and what looks misspelt is remarked on",
    "[api]") {
  const Verdict fresh = verdict_on(R"({"spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {
      "fieldOfTheFuture": {"a": 1}}}}}}})");
  CHECK(fresh.is_allowed());
  CHECK(fresh.warnings.empty());
  const Verdict misspelt = verdict_on(R"({"spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {
      "nodeSelectr": {"a": "b"}}}}}}})");
  CHECK(misspelt.is_allowed());
  REQUIRE(misspelt.warnings.size() == 1);
  CHECK_THAT(misspelt.warnings[0], Contains("did you mean nodeSelector?"));
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
  CHECK(judged("null", R"({"type": "string"})") == "x: must be a text, but is null");
  CHECK(judged("3.0", R"({"type": "integer"})").empty());
}

}  // namespace trainyard::api
