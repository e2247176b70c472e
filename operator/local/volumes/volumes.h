#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "local/pod_context.h"

namespace trainyard::local {

/// What a container finds at a path.
struct Mount {
  std::string at;                ///< absolute
  std::filesystem::path source;  ///< on this machine; a file or a folder
  bool read_only = false;
  bool is_sub_path = false;  ///< in a volume that may be written to: where it is not there, it becomes a folder
  bool is_in_place = false;  ///< it is there anyway: the machine has it at that path

  friend bool operator==(const Mount&, const Mount&) = default;
};

/// A pod's volumes as folders of this machine. What is the pod's own (ConfigMaps, Secrets, emptyDir) goes when this
/// does; a claim's folder stays, so that the next run resumes from it.
class Volumes {
 public:
  /// Makes them all. Throws Refusal, naming pod and volume, for a kind that takes a cluster, or where what it refers to
  /// is not there.
  Volumes(const PodContext& context, const std::filesystem::path& run_folder);
  ~Volumes();
  Volumes(const Volumes&) = delete;
  Volumes& operator=(const Volumes&) = delete;

  /// What is the pod's own lies below it.
  [[nodiscard]] const std::filesystem::path& folder() const { return own_.front(); }
  /// The mounts that a container asks for. Memory at /dev/shm is left out, as it is there anyway. `variables`: for
  /// subPathExpr. Nothing is made for them yet: make_sub_paths().
  [[nodiscard]] std::vector<Mount> mounts_of(const Json& container, const Variables& variables) const;

 private:
  struct Volume {
    std::filesystem::path path;
    bool read_only = false, is_memory = false;
  };
  Volume make(const Json& volume, const PodContext& context, const std::filesystem::path& run_folder);
  Volume make_empty(const Json& source, const std::filesystem::path& own);
  [[nodiscard]] std::filesystem::path source_of(const Json& mount, const Volume& volume,
                                                const Variables& variables) const;

  std::string pod_;
  std::map<std::string, Volume> volumes_;
  std::vector<std::filesystem::path> own_;  ///< removed with this
};

/// Makes the sub-paths that are not there, as a container starts: an init container may have written them as files.
/// Throws Refusal where one cannot be made.
void make_sub_paths(const std::vector<Mount>& mounts);

}  // namespace trainyard::local
