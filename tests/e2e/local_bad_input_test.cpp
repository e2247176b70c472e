#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "local_job.h"

using namespace trainyard::test;

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("run: what cannot be run is refused with exit code 2, and nothing has run", "[local]") {
  const LocalRun local;
  const std::string flag = (local.base() / "flag").string(), good = ScriptJob{.master = "touch " + flag}.yaml();
  struct Row {
    std::string yaml, problem;
  };
  const std::vector<Row> rows{
      {"a: [", "job.yaml:"},
      {"kind: ConfigMap\nmetadata: {name: c}\n", "no PyTorchJob in it"},
      {replaced(good, "runPolicy: {}", "runPolicy: {suspend: true}"), "job.yaml:5: job j is suspended"},
      {replaced(good, "runPolicy: {}", "runPolicy: {managedBy: kueue.x-k8s.io/multikueue}"),
       "job j is for kueue.x-k8s.io/multikueue to run"},
      {replaced(good, "command: [bash, -c, \"true\"]", "args: [x]"), "container pytorch has no command"},
      {replaced(good, "command: [bash, -c, \"true\"]",
                "env: [{name: A, valueFrom: {configMapKeyRef: {name: c, key: k}}}], command: [bash]"),
       "ConfigMap 'c' is not in the input"},
  };
  for (const Row& row : rows) {
    const Ended ended = local.run(row.yaml);
    CAPTURE(row.yaml, ended.all());
    CHECK(ended.code == 2);
    CHECK(has(ended.err, row.problem));
    CHECK_FALSE(std::filesystem::exists(flag));
  }
}

TEST_CASE("run: a program or folder that is not there stops the run with exit code 2", "[local]") {
  const LocalRun local;
  const auto [from, to, problem] = GENERATE(table<std::string, std::string, std::string>({
      {"command: [bash, -c, \"true\"]", "command: [no-such-program]",
       "j-worker-0: cannot run 'no-such-program': No such file"},
      {"command: [bash, -c, \"true\"]", "workingDir: /no/such/folder, command: [bash]",
       "workingDir /no/such/folder: No such file"},
  }));
  const Ended ended = local.run(replaced(ScriptJob{.master = "exec sleep 300"}.yaml(), from, to));
  CAPTURE(ended.all());
  CHECK(ended.code == 2);
  CHECK(has(ended.err, problem));
}

TEST_CASE("validate: all problems with their lines, or how many jobs are valid", "[local]") {
  const LocalRun local;
  const std::string good = local.write(ScriptJob{}.yaml(), "good.yaml");
  const Ended valid = run({.words = trainyard_operator({"validate", "-f", good})});
  CHECK(valid.code == 0);
  CHECK(valid.out == "1 job valid\n");

  const std::string bad = local.write(
      "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec:\n  runPolicies: {}\n  "
      "pytorchReplicaSpecs:\n"
      "    Master:\n      replicas: two\n      template: {spec: {containers: [{name: pytorch, image: x}]}}\n",
      "bad.yaml");
  const Ended invalid = run({.words = trainyard_operator({"validate", "-f", bad})});
  CAPTURE(invalid.all());
  CHECK(invalid.code == 2);
  CHECK(has(invalid.err, "bad.yaml:5: "));
  CHECK(has(invalid.err, "did you mean"));
  CHECK(has(invalid.err, "bad.yaml:8: "));
}

TEST_CASE("render: the objects of a job, the same each time, as YAML or JSON", "[local]") {
  const LocalRun local;
  const std::string file = local.write(ScriptJob{}.yaml());
  const Ended yaml = run({.words = trainyard_operator({"render", "-f", file})});
  CAPTURE(yaml.all());
  CHECK(yaml.code == 0);
  for (const char* const line :
       {"kind: Pod\n", "kind: Service\n", "kind: Secret\n", "name: j-master-0\n", "name: j-worker-0\n"})
    CHECK(has(yaml.out, line));
  CHECK(run({.words = trainyard_operator({"render", "-f", file})}).out == yaml.out);
  const Ended json = run({.words = trainyard_operator({"render", "-f", file, "-o", "json"})});
  CHECK(json.out.starts_with("{\n"));
}

TEST_CASE("the command line: what is unknown is named with its neighbour", "[local]") {
  struct Row {
    Words arguments;
    std::string problem;
  };
  const std::vector<Row> rows{{{"rum"}, "unknown word 'rum', did you mean 'run'?"},
                              {{"run", "--filname", "x"}, "--filename"},
                              {{"validate"}, "--filename is required"},
                              {{"run", "-f", "x", "--restart-scope", "pod"}, "restart-scope"}};
  for (const Row& row : rows) {
    const Ended ended = run({.words = trainyard_operator(row.arguments)});
    CAPTURE(ended.all());
    CHECK(ended.code == 2);
    CHECK(has(ended.err, row.problem));
  }
  CHECK(run({.words = trainyard_operator({"run", "--help"})}).code == 0);
}
