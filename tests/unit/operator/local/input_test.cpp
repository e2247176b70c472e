#include "local/manifest/input.h"

#include <catch2/catch.hpp>

#include "local/manifest/refusal.h"

using namespace trainyard;
using namespace trainyard::local;

namespace {

Input sorted(const std::string& text) {
  return sort_documents(read_yaml(text, "x.yaml"));
}

}  // namespace

TEST_CASE("input: objects are sorted by what they are for, texts decoded, the rest named", "[input]") {
  const Input input = sorted(
      "{kind: PyTorchJob, metadata: {name: j}}\n---\n"
      "{kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {a: b}, binaryData: {d: AP8=}}\n---\n"
      "{kind: Secret, metadata: {name: s}, data: {a: aGVsbG8=}, stringData: {e: f}}\n---\n"
      "{kind: PersistentVolumeClaim, metadata: {name: p}, spec: {}}\n---\n"
      "{kind: Service, metadata: {name: v}}\n---\n{kind: Namespace, metadata: {name: ns}}\n");
  CHECK(input.jobs.size() == 1);
  CHECK(input.config_maps.at("ns/c") == Entries{{"a", "b"}, {"d", std::string("\0\xff", 2)}});
  CHECK(input.secrets.at("default/s") == Entries{{"a", "hello"}, {"e", "f"}});
  CHECK(input.claims.contains("default/p"));
  CHECK(input.ignored == std::vector<std::string>{"Namespace default/ns: left out, it means nothing without a cluster",
                                                  "Service default/v: left out, it means nothing without a cluster"});
}

TEST_CASE("input: a null entry of a ConfigMap or Secret is an empty text, as the API server reads it", "[input]") {
  const Input input = sorted(
      "{kind: ConfigMap, metadata: {name: c}, data: {a: null}, binaryData: {b: null}}\n---\n"
      "{kind: Secret, metadata: {name: s}, data: {a: null}, stringData: null}\n");
  CHECK(input.config_maps.at("default/c") == Entries{{"a", ""}, {"b", ""}});
  CHECK(input.secrets.at("default/s") == Entries{{"a", ""}});
}

TEST_CASE("input: jobs that are to be given a name are several", "[input]") {
  const std::string job = "{kind: PyTorchJob, metadata: {generateName: tune-}}\n";
  CHECK(sorted(job + "---\n" + job).jobs.size() == 2);
}

TEST_CASE("input: what is no Kubernetes object is refused with its place", "[input]") {
  struct Row {
    const char* text;
    const char* problem;
  };
  const auto row = GENERATE(values<Row>({
      {"a: 1", "x.yaml:1: no Kubernetes object: kind is missing"},
      {"[1]", "x.yaml:1: no Kubernetes object"},
      {"kind: ConfigMap\nmetadata: {}", "x.yaml:2: ConfigMap: metadata.name is missing"},
      {"kind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: 1", "x.yaml:4: data[a] is 1: a text is needed"},
      {"kind: Secret\nmetadata: {name: c}\ndata:\n  a: '?'", "x.yaml:4: data[a] is no base64"},
      {"{kind: Secret, metadata: {name: c}}\n---\n{kind: Secret, metadata: {name: c}}",
       "x.yaml:3: Secret default/c is there twice"},
  }));
  CAPTURE(row.text);
  CHECK_THROWS_WITH(sorted(row.text), Catch::Contains(row.problem));
}

TEST_CASE("input: a file that is not there, and one without a job", "[input]") {
  CHECK_THROWS_WITH(read_input({"/nowhere.yaml"}), Catch::Contains("/nowhere.yaml: No such file or directory"));
  CHECK_THROWS_WITH(read_input({"/dev/null"}), Catch::Contains("no PyTorchJob in it"));
}
