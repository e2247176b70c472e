#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/place.h"

namespace trainyard::launch {

/// What runs on this node.
struct LaunchOptions {
  rendezvous::NodePlace node;
  std::optional<rendezvous::Endpoint> master;  ///< none: a single node, whose ranks meet on the loopback
  std::chrono::milliseconds grace = std::chrono::seconds(30);
  std::chrono::milliseconds rendezvous_timeout = std::chrono::minutes(30);  ///< for nodes of an elastic world
  std::optional<std::chrono::milliseconds> last_call;  ///< once its minimum has come: so long for more of them
  std::string log_dir;                                 ///< also writes rank-N.out and rank-N.err there; "": does not
  std::vector<std::string> command;                    ///< each rank's
  bool is_trainyard = true;                            ///< the command is a subcommand of this program
  int64_t generation = 0;
  int max_restarts = 0;  ///< so often ranks that fail are started again, all of them, here
};

/// Reads the arguments of `trainyard launch`, torchrun's spelling, with - or _ in names. What they don't say the
/// environment does, as for a node's place. Throws InputError; none where --help was asked for and printed.
std::optional<LaunchOptions> parse_launch(const std::vector<std::string>& arguments,
                                          const rendezvous::Environment& environment);

/// Where the launcher's flags end and the command begins; the number of arguments where there is no command.
size_t command_begin(const std::vector<std::string>& arguments);

/// For a subcommand that was started on a node without a launcher, and acts as one (rendezvous::Place::Kind::Node): it
/// kills no rank that saves, as whoever asked the pod to stop has a deadline of their own.
/// PET_RDZV_CONF may say another time-out than `timeout`: "timeout=90" or "join_timeout=90", and "last_call_timeout=5".
LaunchOptions options_of(const rendezvous::Place& place, std::vector<std::string> command,
                         const rendezvous::Environment& environment,
                         std::chrono::milliseconds timeout = LaunchOptions().rendezvous_timeout);

}  // namespace trainyard::launch
