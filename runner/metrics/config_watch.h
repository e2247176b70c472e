#pragma once

#include <string>
#include <vector>

namespace trainyard::metrics {

/// A file that a run was configured by, as it was then.
struct ConfigFile {
  std::string path;
  std::string text;
};

/// Tells whether the files that a run was configured by are still what it read. Who starts next reads what is there
/// then: a ConfigMap that was edited meanwhile is another configuration. One thread.
class ConfigWatch {
 public:
  explicit ConfigWatch(const std::vector<ConfigFile>& files = {});

  /// Those that differ, with the beginning of what their digest is now: "train.yaml (sha256 2c26b46b68ff)", "old.yaml
  /// (gone)"; "": none. A log line tells when that changes. All are read each time: they are a page or two.
  [[nodiscard]] std::string changed();

 private:
  struct Known {
    std::string path, digest;
  };
  std::vector<Known> files_;
  std::string told_;  ///< what changed() returned last
};

}  // namespace trainyard::metrics
