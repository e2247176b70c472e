#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "assemble/world.h"
#include "cli/command.h"
#include "config/config.h"
#include "launch/options.h"
#include "tensor/device.h"

namespace trainyard::cli {

/// The ranks of this machine that `trainyard launch` is to start, as its flags say. Both outlive the session.
struct Launched {
  const launch::LaunchOptions& options;
  const rendezvous::Environment& environment;
};

struct SessionSettings {
  config::Comm comm;
  DeviceKind device = DeviceKind::Cpu;  ///< cuda: each rank has a GPU of its node to itself
  bool takes_what_is_there = false;     ///< `device` is what can be used here, as nobody has named one
  std::chrono::milliseconds rendezvous_timeout = config::Rendezvous{}.timeout;
  std::string config_hash;              ///< must be the same on all ranks
  std::filesystem::path flight_folder;  ///< where a rank leaves what it was doing when it is lost; "": nowhere
  std::string config_text;              ///< what it says, a line a setting: for the message when it is not
  const Launched* launched = nullptr;   ///< null: the environment says what this process is
  /// A pod of a job, or a node that no launcher has taken, is alone here: it meets none of the others.
  bool is_alone_in_a_pod = false;
  /// Asked before so many ranks are started where all of them are on this machine: throws what each would.
  std::function<void(int ranks)> check = {};
};

/// What the environment makes of this process (docs/launching.md): as a rank it joins its world, calls `body` there and
/// leaves in good order; as a node, or as `launch`, it starts its ranks, each of which runs `command`, its name first.
/// Returns the exit code. A PeerError of `body` is thrown on with what the master knows of silent ranks.
int run_in_world(const Arguments& command, const SessionSettings& settings,
                 const std::function<void(const train::World&)>& body);

}  // namespace trainyard::cli
