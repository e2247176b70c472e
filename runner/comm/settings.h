#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "rendezvous/store.h"

namespace trainyard::comm {

class MpiRuntime;

enum class Transport { Gloo, Mpi };

/// What a rank needs to join its world.
struct Settings {
  Transport transport = Transport::Gloo;  ///< of host memory
  Device device = {};                     ///< cuda: the memory of that one goes over NCCL
  int rank = 0;
  int world = 1;
  std::string host;     ///< this pod or host, as messages name it
  int local_world = 1;  ///< ranks of this rank's node
  /// Where the ranks find each other, here and at split(). Outlives every communicator. Null only in a world of one.
  rendezvous::Store* store = nullptr;
  std::string prefix = "comm";  ///< of the keys in the store
  std::chrono::milliseconds timeout{std::chrono::minutes(10)};

  // nccl
  /// Tensors of MemoryKind::Gathered on the device, of this process from now on, lie in memory that NCCL maps to the
  /// peers and are registered with it. Alike on every rank.
  bool user_buffers = false;

  // gloo
  std::string address;        ///< of this rank, for its peers: a numeric IPv4 or IPv6 address of the interface to use
  bool shared_memory = true;  ///< with ranks of the same host
  std::string shared_folder = "/dev/shm";

  // mpi
  std::shared_ptr<MpiRuntime> mpi;  ///< started where there is none
};

/// The world's communicator. Collective over all ranks. Throws PeerError naming the ranks that did not come in time,
/// InputError where this process cannot use the transport or the device. gloo over TCP makes the process ignore
/// SIGPIPE.
std::unique_ptr<Communicator> connect(const Settings& settings);

}  // namespace trainyard::comm
