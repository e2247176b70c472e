#include "local/manifest/receive.h"

#include <catch2/catch.hpp>
#include <regex>

#include "local/manifest/check.h"
#include "local/manifest/input.h"
#include "local/manifest/refusal.h"

using namespace trainyard;
using namespace trainyard::local;

namespace {

Document received(const std::string& text) {
  Document document = read_yaml(text, "x.yaml").at(0);
  receive(document);
  return document;
}

/// A job whose fields `metadata`, `spec` and the pod's container are added to, in YAML's flow style.
struct OddJob {
  std::string metadata = "name: j";
  std::string spec = "";       ///< "runPolicy: {}, "
  std::string pod = "";        ///< "nodeSelector: null, "
  std::string container = "";  ///< ", args: null"
  std::string rest = "";       ///< "status: null\n"

  [[nodiscard]] std::string yaml() const {
    return "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {" + metadata + "}\n" + rest + "spec: {" + spec +
           "pytorchReplicaSpecs: {Master: {replicas: 1, template: {" + pod +
           "spec: {containers: [{name: pytorch, image: x" +
           container + "}]}}}}}\n";
  }
};

}  // namespace

TEST_CASE("receive: what the API server accepts is accepted", "[receive]") {
  struct Row {
    const char* situation;
    OddJob job;
  };
  const std::vector<Row> rows{
      {"empty fields",
       {.metadata = "name: j, labels: null, annotations: {a: null}, finalizers: null",
        .spec = "elasticPolicy: null, runPolicy: {suspend: null, schedulingPolicy: null}, nprocPerNode: null, ",
        .pod = "metadata: {annotations: null, labels: {a: null}}, ",
        .container = ", args: null, env: [{name: A, value: null}], resources: {limits: null, requests: {cpu: null}}",
        .rest = "status: null\n"}},
      {"as Go programs write it",
       {.metadata = "name: j, creationTimestamp: null",
        .pod = "metadata: {creationTimestamp: null}, ",
        .container = ", resources: {}",
        .rest = "status: {conditions: null, replicaStatuses: null}\n"}},
      {"whole numbers in another spelling",
       {.spec = "runPolicy: {activeDeadlineSeconds: 1.2096e+06, backoffLimit: 3.0}, ",
        .container = ", ports: [{name: pytorchjob-port, containerPort: 2.95e+04}]"}},
      {"as it was read from a cluster",
       {.metadata = "name: j, uid: u, resourceVersion: '7', generation: 2, creationTimestamp: '2026-11-27T10:00:00Z', "
                    "deletionTimestamp: '2026-11-27T11:00:00Z', managedFields: [{manager: m}]",
        .rest = "status: {conditions: [{type: Succeeded, status: 'True'}], startTime: '2026-11-27T10:00:00Z'}\n"}}};
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const Document job = received(row.job.yaml());
    CHECK(problems_of(job) == std::vector<std::string>{});
    CHECK_FALSE(job.content.contains("status"));
    CHECK_FALSE(job.content.at("metadata").contains("deletionTimestamp"));
  }
}

TEST_CASE("receive: what the API server refuses stays a problem, by its place", "[receive]") {
  struct Row {
    OddJob job;
    const char* problem;
  };
  const std::vector<Row> rows{
      {{.container = ", args: [null]"}, "containers[0].args[0]: must be a text, but is null"},
      {{.container = ", comand: null"}, "containers[0].comand: is no field of this resource; did you mean command?"},
      {{.container = ", env: [{name: null}]"}, "env[0].name: is missing, but required"},
      {{.spec = "runPolicy: {backoffLimit: 1.5}, "}, "spec.runPolicy.backoffLimit: must be a whole number, but is 1.5"},
      {{.rest = "status: {condtions: []}\n"},
       "x.yaml:4: status.condtions: is no field of this resource; did you mean "},
  };
  for (const Row& row : rows) {
    CAPTURE(row.problem);
    const auto problems = problems_of(received(row.job.yaml()));
    REQUIRE(problems.size() == 1);
    CHECK_THAT(problems.front(), Catch::Contains(row.problem));
  }
}

TEST_CASE("receive: defaults are there for all that read", "[receive]") {
  const Document job = received(
      OddJob{.spec = "runPolicy: {}, ", .container = ", ports: [{containerPort: 1.0, protocol: null}]"}.yaml());
  CHECK(text_at(job.content, "/metadata/namespace") == "default");
  CHECK(*find(job.content, "/spec/runPolicy/suspend") == Json(false));
  const Json& ports = *find(job.content, "/spec/pytorchReplicaSpecs/Master/template/spec/containers/0/ports");
  CHECK(ports == Json::parse(R"([{"containerPort": 1, "protocol": "TCP"}])"));
  CHECK(ports[0].at("containerPort").is_number_integer());
}

TEST_CASE("receive: generateName makes a name as the API server does, where generateName stands", "[receive]") {
  const std::string drawn = "[bcdfghjklmnpqrstvwxz2456789]{5}";
  const auto name_of = [](const std::string& metadata) {
    return text_at(received(OddJob{.metadata = metadata}.yaml()).content, "/metadata/name");
  };
  const std::string first = name_of("generateName: tune-"), second = name_of("name: null, generateName: tune-");
  CHECK(std::regex_match(first, std::regex("tune-" + drawn)));
  CHECK(std::regex_match(second, std::regex("tune-" + drawn)));
  CHECK(first != second);
  CHECK(name_of("name: mine, generateName: tune-") == "mine");
  CHECK(std::regex_match(name_of("generateName: " + std::string(60, 'a')), std::regex("a{58}" + drawn)));
  const Document job = received("kind: PyTorchJob\nmetadata:\n  labels: {}\n  generateName: a\n");
  CHECK(job.place_of("metadata.name") == "x.yaml:4");
}

TEST_CASE("receive: a generated name is checked with the characters that are added", "[receive]") {
  struct Row {
    std::string base, problem;
  };
  const auto row = GENERATE(values<Row>({
      {"Tune_", "a DNS-1035 label must consist of lower case"},
      {"Tune_", "; generateName \"tune-\" would do"},
      {std::string(50, 'a'), "must be no more than 54 characters"},
      {std::string(50, 'a'), "; generateName \"" + std::string(48, 'a') + "-\" would do"},
  }));
  const auto problems = problems_of(received(OddJob{.metadata = "generateName: " + row.base}.yaml()));
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems.front(), Catch::StartsWith("x.yaml:3: metadata.name: ") && Catch::Contains(row.problem));
  CHECK(problems_of(received(OddJob{.metadata = "generateName: " + std::string(48, 'a') + "-"}.yaml())).empty());
}

TEST_CASE("receive: metadata of any object has the API server's types", "[receive]") {
  struct Row {
    const char *metadata, *problem;
  };
  const auto row = GENERATE(values<Row>({
      {"name: 123", R"(x.yaml:2: metadata.name: must be a text, but is 123; write "123")"},
      {"name: c, namespace: 5", R"(metadata.namespace: must be a text, but is 5; write "5")"},
      {"generateName: 7", R"(metadata.generateName: must be a text, but is 7; write "7")"},
      {"name: c, lables: {a: b}", "metadata.lables: is no field of this resource; did you mean labels?"},
      {"name: c, labels: {a: true}", R"(metadata.labels.a: must be a text, but is true; write "true")"},
      {"labels: {}", "metadata.name is missing"},
  }));
  for (const std::string kind : {"ConfigMap", "PyTorchJob"}) {
    CAPTURE(kind, row.metadata);
    const std::string text = "kind: " + kind + "\nmetadata: {" + row.metadata + "}\n";
    CHECK_THROWS_WITH(sort_documents(read_yaml(text, "x.yaml")), Catch::Contains(row.problem));
  }
}
