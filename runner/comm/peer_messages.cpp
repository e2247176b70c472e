#include "comm/peer_messages.h"

#include <fmt/format.h>

namespace trainyard::comm {
namespace {

std::string spoken(std::chrono::milliseconds time) {
  if (time.count() % 1000 == 0) return fmt::format("{} s", time.count() / 1000);
  return fmt::format("{} ms", time.count());
}

}  // namespace

std::string names_of(std::span<const int> ranks, std::span<const std::string> hosts) {
  std::string names = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    names += fmt::format("{}{}", i > 0 ? ", " : "", ranks[i]);
    if (!hosts.empty()) names += fmt::format(" ({})", hosts[static_cast<size_t>(ranks[i])]);
  }
  return names;
}

std::string timeout_message(int rank, const Call& call, const std::string& missing) {
  return fmt::format("rank {}: {} waited {} for {}; see that pod's log, or raise comm.timeout", rank, call.text(),
                     spoken(call.timeout), missing);
}

std::string lost_message(int rank, const Call& call, const std::string& lost, const std::string& how) {
  return fmt::format("rank {}: {} lost {}: {}; see that pod's log", rank, call.text(), lost, how);
}

}  // namespace trainyard::comm
