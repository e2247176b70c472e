#include "shard/mesh.h"

#include <fmt/format.h>

#include <stdexcept>

#include "comm/in_process.h"

namespace trainyard::shard {
namespace {

/// The communicator of a dimension: the world itself, one rank alone, or a part of the world.
std::unique_ptr<comm::Communicator> dimension(comm::Communicator& world, int size, int color, const char* name) {
  if (size == world.world()) return nullptr;
  if (size == 1) return std::move(comm::make_in_process(1, world.timeout()).front());
  return world.split(color, name);
}

}  // namespace

Mesh::Mesh(comm::Communicator& world, MeshSize size) : world_(&world) {
  const auto [replicate, shard, regather] = size;
  if (replicate < 1 || shard < 1 || replicate * shard != world.world())
    throw std::invalid_argument(
        fmt::format("mesh: replicate {} × shard {} is not the world of {}", replicate, shard, world.world()));
  if (regather < 0 || (regather > 0 && shard % regather != 0))
    throw std::invalid_argument(fmt::format("mesh: regather {} is no divisor of shard {}", regather, shard));
  own_shard_ = dimension(world, shard, world.rank() / shard, "shard");
  own_replicate_ = dimension(world, replicate, world.rank() % shard, "replicate");
  if (regather > 0 && regather < shard) regather_ = dimension(world, regather, world.rank() / regather, "regather");
  shard_ = own_shard_ ? own_shard_.get() : &world;
  replicate_ = own_replicate_ ? own_replicate_.get() : &world;
}

std::vector<int> Mesh::holders() const {
  std::vector<int> ranks;
  for (int rank = shard_->rank(); rank < world_->world(); rank += shard_->world()) ranks.push_back(rank);
  return ranks;
}

void Mesh::close(std::chrono::steady_clock::time_point deadline) {
  for (comm::Communicator* const own : {own_shard_.get(), own_replicate_.get(), regather_.get()})
    if (own) own->close(deadline);
}

}  // namespace trainyard::shard
