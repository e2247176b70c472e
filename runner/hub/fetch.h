#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "hub/files.h"
#include "hub/name.h"
#include "hub/settings.h"

namespace trainyard::hub {

/// Which files of a repository are wanted.
struct Choice {
  std::function<FileNames(const FileNames& there)> chosen;     ///< those of what the repository has
  std::function<std::string(const FileNames& there)> lacking;  ///< what is missing for it to be of use; "": nothing
};

/// What a model is needed for.
Choice choice_of(Need need);

/// What is on the disk now.
struct Fetched {
  std::filesystem::path folder;
  std::string commit;
  size_t files = 0;       ///< that are wanted
  size_t downloaded = 0;  ///< of them, as they were not there
  uint64_t bytes = 0;     ///< of those
};

/// Puts what is wanted of name.revision into the cache, if it is not there already, and gives the folder of its
/// snapshot. A commit of which all that is wanted is known to be there is not asked for. Where the hub does not answer
/// or is not to be asked, what the cache has of that revision will do. Any number of processes may do the same at once:
/// each file is downloaded by the one that has its lock, and the others wait for it. Throws InputError, PeerError
/// (answer.h: refuse) and std::filesystem::filesystem_error.
Fetched fetch(const Name& name, const Choice& choice, const Settings& settings);

/// The same into a plain folder, which is made: files, and below .cache/huggingface what is known of them, as
/// huggingface_hub's local_dir. A file that is there and is known to be the same is not downloaded again. Throws
/// InputError where settings.is_offline.
Fetched fetch_into(const std::filesystem::path& folder, const Name& name, const Choice& choice,
                   const Settings& settings);

}  // namespace trainyard::hub
