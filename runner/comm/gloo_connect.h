#pragma once

#include <gloo/transport/device.h>

#include <memory>
#include <string>

#include "comm/peer_exchange.h"
#include "comm/settings.h"

namespace trainyard::comm {

/// What the communicators of one rank share: how it reaches its peers, and gloo's I/O thread, which starts with the
/// first TCP channel.
struct GlooRank {
  Settings settings;
  std::shared_ptr<gloo::transport::Device> device;
};

/// Connects the ranks of `roster` (its hosts may be empty: they are exchanged) through the store, under `prefix`, which
/// no two communicators share. Ranks that can open each other's memory use it, all others TCP. Collective over them.
std::unique_ptr<PeerExchange> connect_peers(GlooRank& rank, Roster roster, const std::string& prefix);

}  // namespace trainyard::comm
