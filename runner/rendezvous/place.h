#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

// How a process learns its place (docs/launching.md): from the variables that torchrun, mpirun and the operator set.
namespace trainyard::rendezvous {

using Environment = std::map<std::string, std::string, std::less<>>;

/// The variables of this process.
Environment process_environment();

struct Endpoint {
  std::string host;
  uint16_t port = 0;
  /// "host:29500", "[::1]:29500"
  [[nodiscard]] std::string text() const;
  bool operator==(const Endpoint&) const = default;
};

/// One node of several; the process starts the ranks of its node.
struct NodePlace {
  int min_nodes = 1;
  int max_nodes = 1;               ///< more than min_nodes: elastic
  std::optional<int> nodes_now;    ///< of an elastic world, as many as WORLD_SIZE counts: no more are to be expected
  std::optional<int> node_rank;    ///< none: agreed at the rendezvous (elastic)
  std::string processes = "auto";  ///< ranks a node: auto, cpu, gpu or a number
};

struct Place {
  enum class Kind {
    Alone,  ///< a world of one
    Rank,   ///< one rank of a world
    Node,   ///< a node: acts as the launcher of its ranks
  };
  Kind kind = Kind::Alone;
  int rank = 0;  ///< for Alone and Rank
  int world = 1;
  int local_rank = 0;
  int local_world = 1;             ///< ranks on this host; 1 where nobody said
  NodePlace node;                  ///< for Node
  std::optional<Endpoint> master;  ///< none: alone, a single node, or mpirun without MASTER_ADDR
  bool under_mpirun = false;
  int64_t generation = 0;  ///< of the gang (TRAINYARD_GENERATION): fences off ranks of an earlier life
  int64_t restart = 0;     ///< of the generation's ranks by their launchers (TORCHELASTIC_RESTART_COUNT)
  // What NCCL_DEBUG and NCCL_DEBUG_SUBSYS ask to be logged, as NCCL reads them:
  bool logs_meeting = false;            ///< BOOTSTRAP: who meets whom where
  bool logs_interface = false;          ///< INIT or NET: the network interface that this rank takes
  bool logs_communicator = false;       ///< INIT: rank, world, host, and what carries data to which peer
  bool logs_collectives = false;        ///< COLL: a line for each of them
  bool summarizes_collectives = false;  ///< no subsystem named: what they come to, with each line of the log
};

/// Pure. Throws InputError naming variable and value where one is malformed, missing, or contradicts another.
Place place_of(const Environment& environment);

/// The secret that the ranks of one job share: TRAINYARD_JOB_TOKEN, or the content of the file TRAINYARD_JOB_TOKEN_FILE
/// (spaces around it dropped); "" where neither is set. Throws InputError where the file cannot be read or both differ.
std::string job_token(const Environment& environment);

}  // namespace trainyard::rendezvous
