#include "comm/gloo.h"
#include "comm/in_process.h"
#include "comm/mpi_backend.h"
#include "comm/settings.h"

namespace trainyard::comm {

std::unique_ptr<Communicator> connect(const Settings& settings) {
  if (settings.world == 1) return std::move(make_in_process(1, settings.timeout).front());
  const auto seen = std::make_shared<Seen>();
  return settings.transport == Transport::Mpi ? connect_mpi(settings, seen) : connect_gloo(settings, seen);
}

}  // namespace trainyard::comm
