#pragma once

#include <chrono>
#include <string>

#include "comm/settings.h"
#include "rendezvous/memory_store.h"
#include "support/ranks.h"

namespace trainyard::test {

/// What `rank(comm, device)` returns on each of `world` ranks, by rank: threads that meet at one store and connect as
/// processes do, by `settings`. Where its device is a CUDA device, each has one of its own.
template <typename Rank>
auto run_connected(int world, comm::Settings settings, Rank&& rank) {
  using namespace std::chrono_literals;
  rendezvous::MemoryStore store;
  settings.world = world, settings.store = &store, settings.timeout = 60s, settings.address = "127.0.0.1";
  return run_threads(world, [&](int number) {
    comm::Settings own = settings;
    own.rank = number, own.host = "pod-" + std::to_string(number);
    if (own.device.kind == DeviceKind::Cuda) own.device.index = number;
    const auto comm = comm::connect(own);
    auto result = rank(*comm, own.device);
    comm->close(std::chrono::steady_clock::now() + 30s);
    return result;
  });
}

}  // namespace trainyard::test
