#include "train/mesh_size.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "base/text.h"
#include "train/exchange.h"

namespace trainyard::train {
namespace {

using config::Strategy;

bool goes_by_nodes(const config::Parallel& parallel) {
  const bool is_hybrid = parallel.strategy == Strategy::HybridShard || parallel.strategy == Strategy::HybridShardZero2;
  return is_hybrid && parallel.shard == -1 && parallel.replicate == -1;
}

std::string divisors(int world) {
  std::string list;
  for (int divisor = 1; divisor <= world; ++divisor)
    if (world % divisor == 0) list += fmt::format("{}, ", divisor);
  return list;
}

std::string started(int world) {
  return world == 1 ? "1 process was started" : fmt::format("{} processes were started", world);
}

/// What is left for the other dimension where `key` is `size`.
int rest_of(const config::Loaded& loaded, const char* key, int64_t size, int world) {
  if (world % size == 0) return static_cast<int>(world / size);
  throw InputError(fmt::format("{} is {}, but {}; use {}or -1 for the rest", loaded.subject(key), size, started(world),
                               divisors(world)));
}

/// A copy of the model on each node, as the hybrid strategies mean it.
shard::MeshSize copy_a_node(const config::Loaded& loaded, const Ranks& ranks) {
  const std::string subject =
      fmt::format("{} is {}", loaded.subject("parallel.strategy"),
                  loaded.config.parallel.strategy == Strategy::HybridShard ? "hybrid_shard" : "hybrid_shard_zero2");
  if (ranks.a_node == 0)
    throw InputError(
        fmt::format("{}, but nodes have different numbers of ranks, or the ranks of a node are not numbered one after "
                    "the other; set parallel.shard to the ranks that shall share one copy of the model",
                    subject));
  if (ranks.a_node == ranks.world)
    throw InputError(
        fmt::format("{}, which keeps a copy of the model on each node, but {} on one node alone; use {}, or set "
                    "parallel.replicate to the copies that this node shall hold",
                    subject, started(ranks.world),
                    loaded.config.parallel.strategy == Strategy::HybridShard ? "full_shard" : "shard_grad_op"));
  if (ranks.a_node == 1)
    throw InputError(fmt::format(
        "{}, which splits the model among the ranks of a node, but each of the {} nodes has one; set parallel.shard to "
        "the ranks that shall share one copy of the model, or use no_shard, of which each has all",
        subject, ranks.world));
  return {.replicate = ranks.world / ranks.a_node, .shard = ranks.a_node};
}

/// replicate and shard; regather is said elsewhere.
shard::MeshSize copies_and_shards(const config::Loaded& loaded, const Ranks& ranks) {
  const config::Parallel& parallel = loaded.config.parallel;
  const int world = ranks.world;
  const int64_t shard = parallel.strategy == Strategy::NoShard ? 1 : parallel.shard, replicate = parallel.replicate;
  if (goes_by_nodes(parallel)) return copy_a_node(loaded, ranks);
  if (shard == -1 && replicate == -1) return {.replicate = 1, .shard = world};
  if (shard == -1)
    return {.replicate = static_cast<int>(replicate), .shard = rest_of(loaded, "parallel.replicate", replicate, world)};
  const int copies = rest_of(loaded, "parallel.shard", shard, world);
  if (replicate != -1 && replicate != copies)
    throw InputError(
        fmt::format("{} is {} and parallel.shard {}, which is a mesh of {} ranks, but {}; leave one of "
                    "them out, or use -1",
                    loaded.subject("parallel.replicate"), replicate, shard, replicate * shard, started(world)));
  return {.replicate = copies, .shard = static_cast<int>(shard)};
}

/// parallel.reshard_after_forward where it is a number of ranks; 0: none.
int regather_of(const config::Loaded& loaded, int shard) {
  const auto ranks = parse_int(loaded.config.parallel.reshard_after_forward);
  if (!ranks || *ranks == 1) return 0;  // 1: each rank keeps the whole, as `false` says
  if (shard % *ranks == 0) return static_cast<int>(*ranks);
  throw InputError(fmt::format("{} is {}, but {} ranks share a copy of the model; use {}true or false",
                               loaded.subject("parallel.reshard_after_forward"), *ranks, shard, divisors(shard)));
}

}  // namespace

Ranks ranks_of(const World& world) {
  const int size = world.comm.world();
  const Answers answers(
      world.comm, std::array{static_cast<double>(world.local_world), static_cast<double>(world.local_rank)}, "nodes");
  const int a_node = static_cast<int>(answers.max(0));
  bool alike = answers.min(0) == answers.max(0) && size % a_node == 0;
  for (int rank = 0; alike && rank < size; ++rank) alike = static_cast<int>(answers.at(rank, 1)) == rank % a_node;
  return {.world = size, .a_node = alike ? a_node : 0};
}

shard::MeshSize mesh_of(const config::Loaded& loaded, const Ranks& ranks) {
  shard::MeshSize size = copies_and_shards(loaded, ranks);
  size.regather = regather_of(loaded, size.shard);
  return size;
}

shard::MeshSize mesh_of(const config::Loaded& loaded, const World& world) {
  if (goes_by_nodes(loaded.config.parallel)) return mesh_of(loaded, ranks_of(world));
  return mesh_of(loaded, Ranks{.world = world.comm.world(), .a_node = 0});
}

}  // namespace trainyard::train
