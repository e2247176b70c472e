#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

// What a file of `accelerate config` says to the launcher: who starts how many ranks where.
namespace trainyard::dialects {

using Environment = std::map<std::string, std::string, std::less<>>;

struct LauncherAdvice {
  std::vector<std::string> flags;  ///< of `trainyard launch`, to stand before those that were given
  Environment environment;         ///< for the ranks
  std::vector<std::string> notes;  ///< what the environment says otherwise, and so is not done
};

/// Reads `path`. What the environment says, as the operator's does in a pod, wins over the file; flags that stand later
/// win over both. Throws InputError for a file that is none of Accelerate's.
LauncherAdvice advice_of(const std::string& path, const Environment& environment);

/// An error of the launcher, which got the flags `given` beside those of the file at `path`, in the words of the file:
/// what neither they nor the environment say is called by its key, after the file's name.
std::string in_words_of(const std::string& path, const std::string& error, const std::vector<std::string>& given,
                        const Environment& environment);

/// What such a file says of machines and ranks.
struct World {
  int nodes = 1, ranks_per_node = 1;
};
/// None where `path` has no num_processes, or leaves it to the devices found. Throws as advice_of.
std::optional<World> world_of(const std::string& path);

/// Where `accelerate config` writes: below HF_HOME, XDG_CACHE_HOME or HOME, as these are set.
std::string default_accelerate_path(const Environment& environment);

}  // namespace trainyard::dialects
