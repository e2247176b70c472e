#include "rendezvous/barrier.h"

#include <fmt/format.h>

#include "rendezvous/heartbeat.h"

namespace trainyard::rendezvous {

std::vector<int> wait_for_all(Store& store, const std::string& name, int rank, int world,
                              std::chrono::milliseconds timeout) {
  const auto key_of = [&](int each) { return fmt::format("{}/{}", name, each); };
  const std::vector<std::string> all{name + "/all"};
  store.set(key_of(rank), "");
  if (store.add(name + "/count", 1) == world) store.set(all.front(), "");
  std::vector<int> missing;
  if (wait_for_ranks(store, all, timeout).missing.empty()) return missing;
  for (int each = 0; each < world; ++each)
    if (!store.get(key_of(each))) missing.push_back(each);
  return missing;
}

}  // namespace trainyard::rendezvous
