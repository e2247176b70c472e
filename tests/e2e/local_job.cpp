#include "local_job.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace trainyard::test {
namespace {

std::string replica(const std::string& script, const std::string& policy, const std::string& pod,
                    const std::string& container) {
  return fmt::format(
      "{{replicas: 1, restartPolicy: {}, template: {{spec: {{{}terminationGracePeriodSeconds: 20, containers: [{{name: "
      "pytorch, "
      "image: none, {}command: [bash, -c, {}]}}]}}}}}}",
      policy, pod, container, nlohmann::json(script).dump());
}

}  // namespace

std::string ScriptJob::yaml() const {
  return fmt::format(
      "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {{name: {}, annotations: {}}}\nspec:\n  runPolicy: "
      "{}\n  "
      "pytorchReplicaSpecs:\n"
      "    Master: {}\n    Worker: {}\n",
      name, annotations, run_policy, replica(master, master_restart_policy, "", ""),
      replica(worker, restart_policy, pod, container));
}

Words trainyard_operator(Words arguments) {
  return Words{TRAINYARD_OPERATOR} + arguments;
}

std::string LocalRun::write(const std::string& yaml, const std::string& file) const {
  std::ofstream(folder_ / file) << yaml;
  return (folder_ / file).string();
}

Command LocalRun::command(const std::string& yaml, const Words& arguments) const {
  return {.words = trainyard_operator({"run", "-f", write(yaml), "--dir", folder().string()}) + arguments};
}

std::string LocalRun::log(const std::string& pod) const {
  return text_of_file(folder() / "logs" / (pod + ".log"));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string text_of_file(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace trainyard::test
