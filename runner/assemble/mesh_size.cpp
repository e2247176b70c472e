#include "assemble/mesh_size.h"

#include <fmt/format.h>

#include <array>

#include "assemble/exchange.h"
#include "base/error.h"
#include "config/strategy.h"

namespace trainyard::train {
namespace {

std::string divisors(int world) {
  std::string list;
  for (int divisor = 1; divisor <= world; ++divisor)
    if (world % divisor == 0) list += fmt::format("{}, ", divisor);
  return list;
}

std::string one_of_divisors(int world) {
  const std::string list = divisors(world);
  return list.substr(0, list.size() - 2);
}

std::string started(int world) {
  return world == 1 ? "1 process was started" : fmt::format("{} processes were started", world);
}

/// Ranks that get rows of their own: those of a context and of a tensor dimension share theirs.
struct DataRanks {
  int world, a_node;
  std::string started;                 ///< for people
  bool is_shared_over_nodes = false;   ///< who shares rows is not on one node
};

/// "parallel.context is 2 and parallel.tensor is 4", of those that are more than 1.
std::string sharing_text(const config::Parallel& parallel) {
  std::string text;
  for (const auto& [key, ranks] :
       {std::pair("parallel.context", parallel.context), {"parallel.tensor", parallel.tensor}})
    if (ranks > 1) text += fmt::format("{}{} is {}", text.empty() ? "" : " and ", key, ranks);
  return text;
}

DataRanks data_ranks_of(const config::Loaded& loaded, const Ranks& ranks) {
  const config::Parallel& parallel = loaded.config.parallel;
  const int64_t sharing = parallel.ranks_sharing_rows();
  if (sharing == 1) return {ranks.world, ranks.a_node, started(ranks.world)};
  const auto [key, other] =
      parallel.context > 1 ? std::pair("parallel.context", parallel.tensor) : std::pair("parallel.tensor", int64_t{1});
  if (ranks.world % sharing != 0)
    throw InputError(fmt::format(
        "{} is {}{}, but {}; use {}", loaded.subject(key), sharing / other,
        other > 1 ? fmt::format(" and parallel.tensor {}", other) : "", started(ranks.world),
        other > 1 ? fmt::format("two numbers whose product divides {}", ranks.world) : one_of_divisors(ranks.world)));
  const bool is_over_nodes = ranks.a_node % sharing != 0;
  return {static_cast<int>(ranks.world / sharing), is_over_nodes ? 0 : static_cast<int>(ranks.a_node / sharing),
          fmt::format("{} and {}", started(ranks.world), sharing_text(parallel)), is_over_nodes};
}

/// What is left for the other dimension where `key` is `size`.
int rest_of(const config::Loaded& loaded, const char* key, int64_t size, const DataRanks& ranks) {
  if (ranks.world % size == 0) return static_cast<int>(ranks.world / size);
  throw InputError(fmt::format("{} is {}, but {}; use {}or -1 for the rest", loaded.subject(key), size, ranks.started,
                               divisors(ranks.world)));
}

/// A copy of the model on each node, as the hybrid strategies mean it.
shard::MeshSize copy_a_node(const config::Loaded& loaded, const DataRanks& ranks) {
  const config::Strategy strategy = loaded.config.parallel.strategy;
  const std::string subject =
      fmt::format("{} is {}", loaded.subject("parallel.strategy"), config::word_of(strategy));
  if (ranks.a_node == 0)
    throw InputError(
        fmt::format("{}, but {}; set parallel.shard to the ranks that shall share one copy of the model", subject,
                    ranks.is_shared_over_nodes
                        ? sharing_text(loaded.config.parallel) + ", which does not divide the ranks of a node"
                        : "nodes have different numbers of ranks, or the ranks of a node are not numbered one after "
                          "the other"));
  if (ranks.a_node == ranks.world)
    throw InputError(fmt::format(
        "{}, which keeps a copy of the model on each node, but {} on one node alone; use {}, or set "
        "parallel.replicate to the copies that this node shall hold",
        subject, started(ranks.world * static_cast<int>(loaded.config.parallel.ranks_sharing_rows())),
        config::word_of(config::traits_of(strategy).reshards_after_forward ? config::Strategy::FullShard
                                                                           : config::Strategy::ShardGradOp)));
  if (ranks.a_node == 1 && loaded.config.parallel.ranks_sharing_rows() == 1)
    throw InputError(fmt::format(
        "{}, which splits the model among the ranks of a node, but each of the {} nodes has one; set parallel.shard to "
        "the ranks that shall share one copy of the model, or use no_shard, of which each has all",
        subject, ranks.world));
  return {.replicate = ranks.world / ranks.a_node, .shard = ranks.a_node};
}

/// replicate and shard; the rest is said elsewhere.
shard::MeshSize copies_and_shards(const config::Loaded& loaded, const DataRanks& ranks) {
  const config::Parallel& parallel = loaded.config.parallel;
  const int world = ranks.world;
  const int64_t shard = config::traits_of(parallel.strategy).shards ? parallel.shard : 1,
                replicate = parallel.replicate;
  if (config::is_copy_a_node(parallel)) return copy_a_node(loaded, ranks);
  if (shard == -1 && replicate == -1) return {.replicate = 1, .shard = world};
  if (shard == -1)
    return {.replicate = static_cast<int>(replicate), .shard = rest_of(loaded, "parallel.replicate", replicate, ranks)};
  const int copies = rest_of(loaded, "parallel.shard", shard, ranks);
  if (replicate != -1 && replicate != copies)
    throw InputError(
        fmt::format("{} is {} and parallel.shard {}, which is a mesh of {} ranks, but {}; leave one of "
                    "them out, or use -1",
                    loaded.subject("parallel.replicate"), replicate, shard, replicate * shard, ranks.started));
  return {.replicate = copies, .shard = static_cast<int>(shard)};
}

/// Ranks of the post-forward mesh where that is another than the shard dimension; 0: it is not.
int post_forward_of(const config::Loaded& loaded, int shard) {
  const auto ranks = config::post_forward_ranks(loaded.config.parallel);
  if (!ranks) return 0;
  if (shard % *ranks == 0) return static_cast<int>(*ranks);
  const std::string subject = loaded.subject("parallel.reshard_after_forward");
  if (shard == 1)
    throw InputError(fmt::format("{} is {}, but no parameter is split over ranks of shard; use true or false", subject,
                                 *ranks));
  throw InputError(fmt::format("{} is {}, but {} ranks share a copy of the model; use {}true or false", subject, *ranks,
                               shard, divisors(shard)));
}

}  // namespace

Ranks ranks_of(const World& world) {
  const int size = world.comm.world();
  const GatheredScalars answers(
      world.comm, std::array{static_cast<double>(world.local_world), static_cast<double>(world.local_rank)}, "nodes");
  const int a_node = static_cast<int>(answers.max(0));
  bool alike = answers.min(0) == answers.max(0) && size % a_node == 0;
  for (int rank = 0; alike && rank < size; ++rank) alike = static_cast<int>(answers.at(rank, 1)) == rank % a_node;
  return {.world = size, .a_node = alike ? a_node : 0};
}

shard::MeshSize mesh_of(const config::Loaded& loaded, const Ranks& ranks) {
  const config::Parallel& parallel = loaded.config.parallel;
  shard::MeshSize size = copies_and_shards(loaded, data_ranks_of(loaded, ranks));
  size.context = static_cast<int>(parallel.context);
  size.tensor = static_cast<int>(parallel.tensor);
  size.replicates_context = !config::traits_of(parallel.strategy).shards;
  size.post_forward = post_forward_of(loaded, size.of(shard::Dimension::Shard));
  return size;
}

shard::MeshSize mesh_of(const config::Loaded& loaded, const World& world) {
  if (config::is_copy_a_node(loaded.config.parallel)) return mesh_of(loaded, ranks_of(world));
  return mesh_of(loaded, Ranks{.world = world.comm.world(), .a_node = 0});
}

}  // namespace trainyard::train
