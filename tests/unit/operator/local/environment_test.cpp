#include <catch2/catch.hpp>

#include "local/manifest/refusal.h"
#include "local/pod_context.h"
#include "local/pod_run.h"

using namespace trainyard;
using namespace trainyard::local;

namespace {

struct EnvironmentCase {
  api::Job job;
  Json pod = {
      {"metadata",
       {{"name", "llama-worker-1"}, {"uid", "u-1"}, {"labels", {{"app", "x"}}}, {"annotations", {{"a/b", "c"}}}}}};
  Input input;

  EnvironmentCase() {
    job.name = "llama";
    job.ns = "team";
    input.config_maps["team/settings"] = {{"lr", "3e-4"}, {"steps", "10"}};
    input.secrets["team/keys"] = {{"hf", "s3cret"}};
    input.config_maps["other/away"] = input.config_maps["third/away"] = {{"lr", "1"}};
    input.secrets["other/away"] = {{"hf", "s3cret"}};
  }
  [[nodiscard]] PodContext context() const { return {.job = job, .pod = pod, .input = input, .node = "here"}; }
  [[nodiscard]] Variables of(const char* container) const { return environment_of(Json::parse(container), context()); }
};

}  // namespace

TEST_CASE("environment: literals, references and fields, and later ones see and replace earlier ones",
          "[environment]") {
  const Variables variables = EnvironmentCase().of(R"json({
    "envFrom": [{"configMapRef": {"name": "settings"}, "prefix": "CFG_"}, {"secretRef": {"name": "keys"}},
                {"configMapRef": {"name": "none", "optional": true}}],
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)$(CFG_lr)"}, {"name": "A", "value": "2$(A)"},
            {"name": "LR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "lr"}}},
            {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "hf"}}},
            {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "x", "optional": true}}},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
            {"name": "NOTE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['a/b']"}}},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "ADDR", "value": "llama-master-0"}, {"name": "SELF", "value": "$(POD)"}, {"name": "EMPTY"}]
})json");
  const Variables expected{{"CFG_lr", "3e-4"},
                           {"CFG_steps", "10"},
                           {"hf", "s3cret"},
                           {"A", "21"},
                           {"B", "13e-4"},
                           {"LR", "3e-4"},
                           {"KEY", "s3cret"},
                           {"LABEL", "x"},
                           {"POD", "llama-worker-1"},
                           {"NOTE", "c"},
                           {"NODE", "here"},
                           {"ADDR", "127.0.0.1"},
                           {"SELF", "llama-worker-1"},
                           {"EMPTY", ""}};
  CHECK(variables == expected);
}

TEST_CASE("environment: resources of the container, rounded up to the divisor", "[environment]") {
  const Variables variables = EnvironmentCase().of(R"json({
    "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}, "requests": {"memory": 1000}},
    "env": [{"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "MILLI", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
            {"name": "MI", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
            {"name": "REQUEST", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory"}}},
            {"name": "REQUESTED_CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}}]})json");
  CHECK(variables ==
        Variables{{"CPU", "2"}, {"MILLI", "1500"}, {"MI", "1024"}, {"REQUEST", "1000"}, {"REQUESTED_CPU", "2"}});
}

TEST_CASE("environment: what leads nowhere is refused by name", "[environment]") {
  struct Row {
    const char* source;
    const char* problem;
  };
  const auto row = GENERATE(values<Row>({
      {R"json({"configMapKeyRef": {"name": "none", "key": "lr"}})json",
       "pod llama-worker-1: ConfigMap 'none' is not in the input"},
      {R"json({"configMapKeyRef": {"name": "away", "key": "lr"}})json",
       "pod llama-worker-1: ConfigMap 'away' is in namespace other, third, and the job in team"},
      {R"json({"secretKeyRef": {"name": "away", "key": "hf"}})json",
       "pod llama-worker-1: Secret 'away' is in namespace other, and the job in team"},
      {R"json({"secretKeyRef": {"name": "keys", "key": "x"}})json", "Secret 'keys' has no key 'x'"},
      {R"json({"fieldRef": {"fieldPath": "status.phase"}})json", "fieldRef 'status.phase' is unknown"},
      {R"json({"resourceFieldRef": {"resource": "cpu"}})json", "resourceFieldRef 'cpu' is unknown"},
      {R"json({"fileKeyRef": {}})json", "valueFrom needs"},
  }));
  CAPTURE(row.source);
  const std::string container = std::string(R"json({"env": [{"name": "X", "valueFrom": )json") + row.source + "}]}";
  CHECK_THROWS_WITH(EnvironmentCase().of(container.c_str()), Catch::Contains(row.problem));
}

TEST_CASE("command: the container's own, with addresses and variables put in", "[environment]") {
  const EnvironmentCase fixture;
  const auto words = command_of(Json::parse(R"json({"command": ["sh", "-c"], "args": ["x $(N) llama-master-0"]})json"),
                                {{"N", "7"}}, fixture.context());
  CHECK(words == std::vector<std::string>{"sh", "-c", "x 7 127.0.0.1"});
}

TEST_CASE("command: without one the image's name may tell the program", "[environment]") {
  struct Row {
    const char* image;
    const char* program;
  };
  const auto row = GENERATE(values<Row>({{"trainyard", "trainyard"},
                                         {"ghcr.io:443/a/trainyard-cuda:1.2", "trainyard"},
                                         {"library/bash:5@sha256:0123", "bash"}}));
  const EnvironmentCase fixture;
  const auto words = command_of(Json{{"image", row.image}, {"args", {"train"}}}, {}, fixture.context());
  CHECK(words == std::vector<std::string>{row.program, "train"});
  CHECK_THROWS_WITH(command_of(Json{{"name", "pytorch"}, {"image", "no.such/program-here:1"}}, {}, fixture.context()),
                    Catch::Contains("container pytorch has no command"));
}
