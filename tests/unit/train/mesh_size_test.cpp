#include "assemble/mesh_size.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "rendezvous/memory_store.h"
#include "support/ranks.h"

namespace trainyard::train {
namespace {

/// "2 x 4 x 2": replicate, shard and, where rows are split, context; or the error.
std::string mesh_text(const char* yaml, Ranks ranks) {
  try {
    const shard::MeshSize size = mesh_of(config::load({}, {{"train.yaml", yaml}}), ranks);
    return std::to_string(size.replicate) + " x " + std::to_string(size.shard) +
           (size.context > 1 ? " x " + std::to_string(size.context) : "") +
           (size.context > 1 && size.replicates_context ? ", whole" : "") +
           (size.post_forward > 0 ? " / " + std::to_string(size.post_forward) : "");
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("mesh_of: what is -1 is the rest, and where both are, the strategy says", "[train]") {
  struct Row {
    const char* yaml;
    Ranks ranks;
    const char* expected;
  };
  const std::vector<Row> rows{
      {"", {7, 7}, "1 x 7"},
      {"parallel: {strategy: shard_grad_op}", {8, 4}, "1 x 8"},
      {"parallel: {strategy: no_shard}", {3, 1}, "3 x 1"},
      {"parallel: {strategy: no_shard, shard: 1, replicate: 3}", {3, 1}, "3 x 1"},
      {"parallel: {strategy: hybrid_shard}", {8, 4}, "2 x 4"},
      {"parallel: {strategy: hybrid_shard_zero2}", {6, 2}, "3 x 2"},
      {"parallel: {strategy: hybrid_shard, shard: 2}", {4, 1}, "2 x 2"},
      {"parallel: {strategy: hybrid_shard, replicate: 2}", {4, 4}, "2 x 2"},
      {"parallel: {strategy: hybrid_shard, shard: 4}", {8, 0}, "2 x 4"},
      {"parallel: {shard: 2}", {8, 8}, "4 x 2"},
      {"parallel: {shard: 4, replicate: 1}", {4, 4}, "1 x 4"},
      {"parallel: {shard: 2, replicate: 4}", {8, 2}, "4 x 2"},
      {"parallel: {replicate: 8}", {8, 8}, "8 x 1"},
      {"parallel: {shard: 1}", {1, 1}, "1 x 1"},
      {"parallel: {reshard_after_forward: 2}", {8, 8}, "1 x 8 / 2"},
      {"parallel: {strategy: hybrid_shard, reshard_after_forward: 2}", {8, 4}, "2 x 4 / 2"},
      {"parallel: {reshard_after_forward: 1}", {4, 4}, "1 x 4"},
      {"parallel: {reshard_after_forward: false}", {4, 4}, "1 x 4"},
      {"parallel: {context: 2}", {8, 8}, "1 x 4 x 2"},
      {"parallel: {context: 8}", {8, 8}, "1 x 1 x 8"},
      {"parallel: {context: 2, shard: 1}", {8, 8}, "4 x 1 x 2"},
      {"parallel: {context: 2, replicate: 2}", {8, 8}, "2 x 2 x 2"},
      {"parallel: {context: 2, strategy: no_shard}", {8, 8}, "4 x 1 x 2, whole"},
      {"parallel: {context: 2, strategy: hybrid_shard}", {8, 4}, "2 x 2 x 2"},
      {"parallel: {context: 4, strategy: hybrid_shard}", {8, 4}, "2 x 1 x 4"},
      {"parallel: {context: 2, shard: 2, reshard_after_forward: 2}", {4, 4}, "1 x 2 x 2 / 2"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.yaml, row.ranks.world);
    CHECK(mesh_text(row.yaml, row.ranks) == row.expected);
  }
}

TEST_CASE("mesh_of: a mesh that does not multiply up, or lacks nodes, is refused with what to do", "[train]") {
  struct Row {
    const char* yaml;
    Ranks ranks;
    const char* message;
  };
  const std::vector<Row> rows{
      {"parallel: {shard: 6}",
       {4, 4},
       "train.yaml:1: parallel.shard is 6, but 4 processes were started; use 1, 2, 4, or -1 for the rest"},
      {"parallel: {context: 3}",
       {4, 4},
       "train.yaml:1: parallel.context is 3, but 4 processes were started; use 1, 2, 4"},
      {"parallel: {shard: 4, context: 2}",
       {4, 4},
       "train.yaml:1: parallel.shard is 4, but 4 processes were started and parallel.context is 2; use 1, 2, or -1 for "
       "the rest"},
      {"parallel: {context: 3, strategy: hybrid_shard}",
       {12, 4},
       "train.yaml:1: parallel.strategy is hybrid_shard, but parallel.context is 3, which does not divide the ranks of "
       "a node; set parallel.shard to the ranks that shall share one copy of the model"},
      {"parallel: {shard: 2}",
       {1, 1},
       "train.yaml:1: parallel.shard is 2, but 1 process was started; use 1, or -1 for the rest"},
      {"parallel: {replicate: 3}",
       {4, 4},
       "train.yaml:1: parallel.replicate is 3, but 4 processes were started; use 1, 2, 4, or -1 for the rest"},
      {"parallel: {shard: 2, replicate: 1}",
       {4, 4},
       "train.yaml:1: parallel.replicate is 1 and parallel.shard 2, which is a mesh of 2 ranks, but 4 processes were "
       "started; leave one of them out, or use -1"},
      {"parallel: {strategy: no_shard, replicate: 2}",
       {4, 4},
       "train.yaml:1: parallel.replicate is 2 and parallel.shard 1, which is a mesh of 2 ranks, but 4 processes were "
       "started; leave one of them out, or use -1"},
      {"parallel: {reshard_after_forward: 3}",
       {4, 4},
       "train.yaml:1: parallel.reshard_after_forward is 3, but 4 ranks share a copy of the model; use 1, 2, 4, true or "
       "false"},
      {"parallel: {strategy: hybrid_shard}",
       {4, 4},
       "train.yaml:1: parallel.strategy is hybrid_shard, which keeps a copy of the model on each node, but 4 processes "
       "were started on one node alone; use full_shard, or set parallel.replicate to the copies that this node shall "
       "hold"},
      {"parallel: {strategy: hybrid_shard}",
       {4, 1},
       "train.yaml:1: parallel.strategy is hybrid_shard, which splits the model among the ranks of a node, but each of "
       "the 4 nodes has one; set parallel.shard to the ranks that shall share one copy of the model, or use no_shard, "
       "of which each has all"},
      {"parallel: {strategy: hybrid_shard_zero2}",
       {6, 0},
       "train.yaml:1: parallel.strategy is hybrid_shard_zero2, but nodes have different numbers of ranks, or the ranks "
       "of a node are not numbered one after the other; set parallel.shard to the ranks that shall share one copy of "
       "the model"},
  };
  for (const Row& row : rows) CHECK(mesh_text(row.yaml, row.ranks) == row.message);
}

TEST_CASE("ranks_of: nodes count where all have the same ranks, numbered one after the other", "[train]") {
  const auto seen_by_rank_0 = [](const std::vector<std::pair<int, int>>& local_worlds_and_ranks) {
    rendezvous::MemoryStore store;
    return test::run_ranks(static_cast<int>(local_worlds_and_ranks.size()), [&](comm::Communicator& comm) {
      const auto [world, rank] = local_worlds_and_ranks[static_cast<size_t>(comm.rank())];
      return ranks_of({.comm = comm, .store = store, .local_world = world, .local_rank = rank}).a_node;
    })[0];
  };
  CHECK(seen_by_rank_0({{2, 0}, {2, 1}, {2, 0}, {2, 1}}) == 2);
  CHECK(seen_by_rank_0({{1, 0}, {1, 0}, {1, 0}}) == 1);
  CHECK(seen_by_rank_0({{2, 0}, {2, 1}, {1, 0}}) == 0);          // nodes of 2 and of 1
  CHECK(seen_by_rank_0({{2, 0}, {2, 0}, {2, 1}, {2, 1}}) == 0);  // dealt round robin, as mpirun --map-by node does
}

}  // namespace trainyard::train
