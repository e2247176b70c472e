#include "shard/mesh.h"

#include <fmt/format.h>

#include <ranges>
#include <stdexcept>
#include <utility>

#include "comm/in_process.h"

namespace trainyard::shard {
namespace {

size_t index_of(Dimension dimension) {
  return static_cast<size_t>(dimension);
}

/// The communicator of `size` ranks, `stride` apart: null for the world itself, one rank alone, or a part of the world.
/// `is_apart`: even all ranks have one of their own, which does not queue behind the world's collectives.
std::unique_ptr<comm::Communicator> part_of(comm::Communicator& world, int size, int stride, std::string_view name,
                                            bool is_apart = false) {
  if (size == world.world() && (!is_apart || size == 1)) return nullptr;
  if (size == 1) return std::move(comm::make_in_process(1, world.timeout()).front());
  const int rank = world.rank();
  return world.split(rank / (stride * size) * stride + rank % stride, std::string(name));
}

/// Those that have more than one rank, each counted once.
int dimensions_of(const MeshSize& size) {
  return (size.replicate > 1) + (size.shard > 1) + (size.context > 1) + (size.tensor > 1);
}

/// "shard 1, tensor 0" of each rank.
std::vector<std::string> places_in(const MeshSize& size) {
  std::vector<std::string> places;
  for (int rank = 0; rank < size.world(); ++rank) {
    std::string place;
    int stride = size.world();
    for (const auto& [name, ranks] : {std::pair("replicate", size.replicate),
                                      {"shard", size.shard},
                                      {"context", size.context},
                                      {"tensor", size.tensor}}) {
      stride /= ranks;
      if (ranks > 1) place += fmt::format("{}{} {}", place.empty() ? "" : ", ", name, rank / stride % ranks);
    }
    places.push_back(place);
  }
  return places;
}

}  // namespace

std::string_view name_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::Replicate:
      return "replicate";
    case Dimension::Shard:
      return "shard";
    case Dimension::Context:
      return "context";
    case Dimension::Tensor:
      return "tensor";
  }
  throw std::logic_error("name_of: no such dimension");
}

int MeshSize::of(Dimension dimension) const {
  switch (dimension) {
    case Dimension::Replicate:
      return replicates_context ? replicate * context : replicate;
    case Dimension::Shard:
      return replicates_context ? shard : shard * context;
    case Dimension::Context:
      return context;
    case Dimension::Tensor:
      return tensor;
  }
  throw std::logic_error("MeshSize: no such dimension");
}

int MeshSize::stride_of(Dimension dimension) const {
  switch (dimension) {
    case Dimension::Replicate:
      return of(Dimension::Shard) * tensor;
    case Dimension::Shard:
    case Dimension::Context:
      return tensor;
    case Dimension::Tensor:
      return 1;
  }
  throw std::logic_error("MeshSize: no such dimension");
}

int MeshSize::world() const {
  return replicate * shard * context * tensor;
}

int MeshSize::place_in(Dimension dimension, int rank) const {
  return rank / stride_of(dimension) % of(dimension);
}

Mesh::Mesh(comm::Communicator& world, MeshSize size) : world_(&world), size_(size) {
  if (size.replicate < 1 || size.shard < 1 || size.context < 1 || size.tensor < 1 || size.world() != world.world())
    throw std::invalid_argument(
        fmt::format("mesh: replicate {} × shard {} × context {} × tensor {} is not the world of {}", size.replicate,
                    size.shard, size.context, size.tensor, world.world()));
  if (size.replicates_context && size.shard > 1)
    throw std::invalid_argument(fmt::format("mesh: shard is {}, but parameters are whole on each rank", size.shard));
  const int shard = size.of(Dimension::Shard);
  if (size.post_forward < 0 || (size.post_forward > 0 && shard % size.post_forward != 0))
    throw std::invalid_argument(fmt::format("mesh: post_forward {} is no divisor of the {} ranks of a copy",
                                            size.post_forward, shard));
  if (dimensions_of(size) > 1) world.name_ranks(places_in(size));
  for (const Dimension dimension : kDimensions | std::views::reverse)
    own_[index_of(dimension)] = part_of(world, size.of(dimension), size.stride_of(dimension), name_of(dimension),
                                        // What layers wait for waits for no gather.
                                        dimension == Dimension::Context || dimension == Dimension::Tensor);
  if (size.post_forward > 0 && size.post_forward < shard)
    post_forward_ = part_of(world, size.post_forward, size.stride_of(Dimension::Shard), "post_forward");
}

comm::Communicator& Mesh::of(Dimension dimension) const {
  const auto& own = own_[index_of(dimension)];
  return own ? *own : *world_;
}

std::vector<int> Mesh::holders() const {
  const int next = size_.stride_of(Dimension::Replicate);
  std::vector<int> ranks;
  for (int rank = world_->rank() % next; rank < world_->world(); rank += next) ranks.push_back(rank);
  return ranks;
}

void Mesh::close(std::chrono::steady_clock::time_point deadline) {
  for (const Dimension dimension : kDimensions | std::views::reverse)
    if (const auto& own = own_[index_of(dimension)]) own->close(deadline);
  if (post_forward_) post_forward_->close(deadline);
}

}  // namespace trainyard::shard
