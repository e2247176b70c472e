#include "launch/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "launch/nodes.h"
#include "launch/resources.h"
#include "rendezvous/proof.h"
#include "rendezvous/sockets.h"

namespace trainyard::launch {
namespace {

using rendezvous::Endpoint;
using rendezvous::Environment;

std::string random_token() {
  std::string token;
  for (const char byte : rendezvous::fresh_nonce()) token += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return token;
}

/// Who stands at the loopback of a shared machine is anybody: ranks of one launcher share a secret without being told.
void add_token(Environment& environment, const LocalWorld& world) {
  static const std::string token = random_token();
  const bool is_alone = world.ranks == world.world;
  const bool has_token =
      environment.contains("TRAINYARD_JOB_TOKEN") || environment.contains("TRAINYARD_JOB_TOKEN_FILE");
  if (is_alone && !has_token) environment["TRAINYARD_JOB_TOKEN"] = token;
}

}  // namespace

LocalWorld local_world(const LaunchOptions& options, const Environment& environment, int restart) {
  const Resources resources = resources_here(environment);
  LocalWorld world;
  world.ranks = ranks_of(options.node.processes, resources);
  world.cores = resources.cores;
  world.restart = restart;
  if (options.node.min_nodes != options.node.max_nodes) return agree_on_nodes(options, std::move(world), environment);
  world.node_rank = options.node.node_rank.value_or(0);
  world.first_rank = world.node_rank * world.ranks;
  world.world = options.node.max_nodes * world.ranks;
  if (options.master) {
    world.master = *options.master;
    return world;
  }
  world.listener = rendezvous::listen_on("127.0.0.1", 0);
  world.master = Endpoint{"127.0.0.1", rendezvous::local_address(world.listener.get()).port()};
  if (!options.is_trainyard) world.listener.reset();
  return world;
}

std::optional<rendezvous::Place> only_rank_of(const rendezvous::Place& place, const LaunchOptions& options,
                                              const Environment& environment) {
  if (place.kind != rendezvous::Place::Kind::Node || options.max_restarts > 0) return std::nullopt;
  if (ranks_of(place.node.processes, resources_here(environment)) != 1) return std::nullopt;
  rendezvous::Place rank = place;
  rank.rank = place.node.node_rank.value_or(0);
  rank.world = place.node.max_nodes;
  if (place.node.min_nodes != place.node.max_nodes) {
    const LocalWorld world = local_world(options, environment);
    rank.rank = world.first_rank;
    rank.world = world.world;
    rank.master = world.master;
  }
  rank.kind = rank.world == 1 ? rendezvous::Place::Kind::Alone : rendezvous::Place::Kind::Rank;
  return rank;
}

std::vector<std::string> environment_of(int local_rank, const LocalWorld& world, const Environment& base) {
  Environment environment = base;
  for (const char* const other : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                                  "OMPI_COMM_WORLD_LOCAL_SIZE", "TRAINYARD_STORE_LISTENER"}) {
    environment.erase(other);
  }
  environment["RANK"] = fmt::format("{}", world.first_rank + local_rank);
  environment["LOCAL_RANK"] = fmt::format("{}", local_rank);
  environment["WORLD_SIZE"] = fmt::format("{}", world.world);
  environment["LOCAL_WORLD_SIZE"] = fmt::format("{}", world.ranks);
  environment["GROUP_RANK"] = fmt::format("{}", world.node_rank);
  environment["MASTER_ADDR"] = world.master.host;
  environment["MASTER_PORT"] = fmt::format("{}", world.master.port);
  environment["TORCHELASTIC_RESTART_COUNT"] = fmt::format("{}", world.restart);
  environment.try_emplace("OMP_NUM_THREADS", fmt::format("{}", std::max(1, world.cores / world.ranks)));
  add_token(environment, world);
  if (local_rank == 0 && world.listener.valid()) {
    environment["TRAINYARD_STORE_LISTENER"] = fmt::format("{}", world.listener.get());
  }
  std::vector<std::string> texts;
  for (const auto& [name, value] : environment) texts.push_back(name + "=" + value);
  return texts;
}

}  // namespace trainyard::launch
