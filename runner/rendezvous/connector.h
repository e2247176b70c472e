#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/files.h"
#include "rendezvous/place.h"
#include "rendezvous/proof.h"

namespace trainyard::rendezvous {

struct ClientSettings {
  Endpoint master;
  Credentials credentials;
  /// It tries until it is connected: the master may start minutes later, and its name may not resolve before.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);
  /// Once connected, the store answers within it or is lost.
  std::chrono::milliseconds reply_timeout = std::chrono::seconds(60);
  /// How long a refused token is tried again: where a job was just made anew under one name, the address may still lead
  /// to the old one's master.
  std::chrono::milliseconds refusal_grace = std::chrono::seconds(30);
  std::optional<std::string> source;  ///< numeric local address to connect from; none: as the route says
  std::function<bool()> interrupted;  ///< asked ten times a second while waiting; true ends it with TerminatedError
};

/// A connection on which both sides have proved themselves. Tries again, ever slower, until it works.
/// Throws PeerError naming host, port and the last reason after `timeout`; InputError where the store refuses this
/// rank for good (another token, a newer generation); PeerError where it is of a later restart; TerminatedError where
/// interrupted.
UniqueFd connect_to_store(const ClientSettings& settings);

}  // namespace trainyard::rendezvous
