#pragma once

#include <string>

#include "process.h"

// PyTorchJobs of shell scripts, and the operator that runs them on this machine.
namespace trainyard::test {

/// A job `j`: a master and one worker that run these scripts with bash.
struct ScriptJob {
  std::string master = "true", worker = "true";
  std::string run_policy = "{}";             ///< in YAML's flow style, as the next ones
  std::string restart_policy = "OnFailure";  ///< of the worker
  std::string master_restart_policy = "Never";
  std::string pod = "";            ///< further fields of the worker's pod, "volumes: […], "
  std::string container = "";      ///< and of its container
  std::string annotations = "{}";  ///< of the job
  std::string name = "j";

  [[nodiscard]] std::string yaml() const;
};

/// The operator with these arguments.
Words trainyard_operator(Words arguments);

/// A folder with manifests and runs.
class LocalRun {
 public:
  /// Writes `yaml` to a file of this name; its path.
  std::string write(const std::string& yaml, const std::string& file = "job.yaml") const;
  /// `run -f job.yaml --dir run arguments…`
  [[nodiscard]] Command command(const std::string& yaml, const Words& arguments = {}) const;
  [[nodiscard]] Ended run(const std::string& yaml, const Words& arguments = {}) const {
    return test::run(command(yaml, arguments));
  }
  [[nodiscard]] std::string log(const std::string& pod) const;
  [[nodiscard]] std::filesystem::path folder() const { return folder_ / "run"; }
  [[nodiscard]] std::filesystem::path base() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

[[nodiscard]] bool has(const std::string& text, const std::string& part);
[[nodiscard]] std::string text_of_file(const std::filesystem::path& file);

}  // namespace trainyard::test
