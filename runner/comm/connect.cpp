#include "comm/gloo.h"
#include "comm/in_process.h"
#include "comm/mpi_backend.h"
#include "comm/nccl.h"
#include "comm/settings.h"

namespace trainyard::comm {

std::unique_ptr<Communicator> connect(const Settings& settings) {
  if (settings.world == 1) return std::move(make_in_process(1, settings.timeout).front());
  const auto seen = std::make_shared<Seen>();
  auto host = settings.transport == Transport::Mpi ? connect_mpi(settings, seen) : connect_gloo(settings, seen);
  if (settings.device.kind == DeviceKind::Cpu) return host;
  return connect_nccl(settings, std::move(host), seen);
}

}  // namespace trainyard::comm
