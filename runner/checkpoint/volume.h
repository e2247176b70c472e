#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard::checkpoint {

/// What a folder of a container lies on: a line of /proc/self/mountinfo.
struct Mount {
  std::string point;  ///< where this process sees it
  std::string root;   ///< which part of its file system that is: of an emptyDir on disk the kubelet's path to it
  std::string type;   ///< "overlay", "ext4", "tmpfs", "nfs4", …

  friend bool operator==(const Mount&, const Mount&) = default;
};

/// The mount that holds `folder`, an absolute path without links, by the text of /proc/self/mountinfo; of several at
/// one point the last, which hides the others. None where no line holds it. Lines that are none are passed over.
std::optional<Mount> mount_of(std::string_view mountinfo, const std::filesystem::path& folder);

/// What goes with its pod, in words ("an emptyDir"); none for what outlives it, or cannot be told to go.
std::optional<std::string> ends_with_pod(const Mount& mount);

/// What to tell who trains in a pod and has checkpoints in `folder`, which need not be there yet; none where they stay.
std::optional<std::string> volume_warning(const std::filesystem::path& folder);

}  // namespace trainyard::checkpoint
