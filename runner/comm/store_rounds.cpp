#include "comm/store_rounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "rendezvous/heartbeat.h"

namespace trainyard::comm {

std::vector<std::string> StoreRounds::round(const std::string& name, const std::string& value) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < roster_.world(); ++rank) keys.push_back(fmt::format("{}/{}/{}", prefix_, name, rank));
  store_.set(keys[roster_.rank], value);
  auto seen = rendezvous::wait_for_ranks(store_, keys, timeout_);
  if (seen.missing.empty()) return std::move(seen.values);
  std::vector<int> late;
  for (int rank = 0; rank < roster_.world(); ++rank)
    if (std::ranges::find(seen.missing, keys[rank]) != seen.missing.end()) late.push_back(rank);
  throw PeerError(roster_.waited({.name = "connecting", .label = {}, .timeout = timeout_}, late));
}

}  // namespace trainyard::comm
