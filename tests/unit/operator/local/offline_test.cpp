#include "local/manifest/offline.h"

#include <catch2/catch.hpp>

#include <fstream>

#include "support/support.h"

using namespace trainyard;
using namespace trainyard::local;

namespace {

Rendering rendered(const std::string& run_policy) {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "job.yaml").string();
  std::ofstream(file) << "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec:\n  runPolicy: "
                      << run_policy
                      << "\n  pytorchReplicaSpecs:\n    Master:\n      replicas: 1\n"
                         "      template: {spec: {containers: [{name: pytorch, image: x}]}}\n";
  return render_files({file}, {}, Format::Yaml);
}

}  // namespace

TEST_CASE("render: a job of which the operator would make no pod says why", "[offline]") {
  struct Row {
    const char* situation;
    const char* run_policy;
    const char* note;
    bool has_pods;
  };
  const auto row = GENERATE(values<Row>({
      {"ours", "{}", "", true},
      {"ours in so many words", "{managedBy: kubeflow.org/training-operator}", "", true},
      {"another controller's", "{managedBy: kueue.x-k8s.io/multikueue}",
       "job.yaml:5: job j is for kueue.x-k8s.io/multikueue to run: the operator makes nothing of it", false},
      {"suspended", "{suspend: true}", "job.yaml:5: job j is suspended: the operator makes no pod of it", false},
  }));
  CAPTURE(row.situation);
  const Rendering rendering = rendered(row.run_policy);
  CHECK((rendering.text.find("kind: Pod\n") != std::string::npos) == row.has_pods);
  REQUIRE(rendering.notes.size() == (*row.note == '\0' ? 0 : 1));
  if (!rendering.notes.empty()) CHECK_THAT(rendering.notes.front(), Catch::EndsWith(row.note));
}
