#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "cli/command.h"
#include "config/config.h"
#include "train/world.h"

namespace trainyard::cli {

struct SessionSettings {
  config::Comm comm;
  std::chrono::milliseconds rendezvous_timeout = config::Rendezvous{}.timeout;
  std::string config_hash;              ///< must be the same on all ranks
  std::filesystem::path flight_folder;  ///< where a rank leaves what it was doing when it is lost; "": nowhere
  std::string config_text;              ///< what it says, a line a setting: for the message when it is not
};

/// What the environment makes of this process (docs/launching.md): as a rank it joins its world, calls `body` there and
/// leaves in good order; as a node it launches its ranks, each of which runs `command`. Returns the exit code.
/// A PeerError of `body` is thrown on with what the master knows of silent ranks.
int run_in_world(const Arguments& command, const SessionSettings& settings,
                 const std::function<void(const train::World&)>& body);

}  // namespace trainyard::cli
