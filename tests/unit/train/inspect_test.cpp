#include "run/inspect.h"

#include <catch2/catch.hpp>

#include "assemble/sharded_model.h"
#include "support/ranks.h"

namespace trainyard::train {
namespace {

std::string inspected(MeshSize mesh, const shard::Policy& policy = {}, int64_t heads = 3) {
  const models::ModelConfig config{.family = "qwen3",
                                   .vocab_size = 1024,
                                   .hidden_size = 5,
                                   .intermediate_size = 7,
                                   .layers = 2,
                                   .heads = heads,
                                   .kv_heads = 1,
                                   .head_dim = 2,
                                   .tied_head = true};
  return test::run_ranks(mesh.world(), [&](comm::Communicator& world) {
    return inspection(config, *shard_model(config, world, {mesh, policy}).engine);
  })[0];
}

}  // namespace

// The shapes are those of to_local() under PyTorch's fully_shard.
TEST_CASE("inspection: shows what every rank holds of rows that do not divide, empty shards included", "[train]") {
  const std::string four = inspected({1, 4});
  for (const char* const line : {"model.embed_tokens.weight", "Shard(0)  local [256, 5] on ranks 0-3\n",
                                 "model.norm.weight                                             [5]  Shard(0)  local "
                                 "[2] on ranks 0-1, [1] on rank 2, [0] on rank 3\n",
                                 "model.layers.1.self_attn.k_proj.weight                     [2, 5]  Shard(0)  local "
                                 "[1, 5] on ranks 0-1, [0, 5] on ranks 2-3\n"})
    CHECK_THAT(four, Catch::Contains(line));
  CHECK_THAT(inspected({1, 3}),
             Catch::Contains("[1024, 5]  Shard(0)  local [342, 5] on ranks 0-1, [340, 5] on rank 2\n") &&
                 Catch::Contains("[5]  Shard(0)  local [2] on ranks 0-1, [1] on rank 2\n"));
}

TEST_CASE("inspection: shows how each parameter is split over tensor and over shard", "[train]") {
  const std::string text = inspected({.shard = 2, .tensor = 2}, {}, 4);
  for (const char* const line :
       {"mesh: replicate 1 x shard 2 x tensor 2\n",
        "model.embed_tokens.weight                               [1024, 5]  vocabulary over tensor, rows over shard  its "
        "part [512, 5]  local [256, 5] on shards 0-1\n",
        "self_attn.q_proj.weight                     [8, 5]  column over tensor, rows over shard  its part [4, 5]  local "
        "[2, 5] on shards 0-1\n",
        "mlp.down_proj.weight                        [5, 7]  row over tensor, rows over shard  its part [5, 4]  local [3, "
        "4] on shard 0, [2, 4] on shard 1\n",
        "model.norm.weight                                             [5]  whole on each of tensor, rows over shard  "
        "local [3] on shard 0, [2] on shard 1\n",
        " all-reduces over tensor of ", "parameters on the first rank of tensor; "})
    CHECK_THAT(text, Catch::Contains(line));
}

TEST_CASE("inspection: shows mesh, dtypes, groups and the collectives of a step", "[train]") {
  CHECK_THAT(inspected({1, 2}, {.precision = {.param_dtype = DType::BFloat16}}),
             Catch::Contains("mesh: replicate 1 x shard 2\n") &&
                 Catch::Contains("dtypes: shards of what is trained, reduced gradients and optimizer float32; of each "
                                 "group what it says\n") &&
                 Catch::Contains("a step of one micro-batch: 5 all-gathers of ") &&
                 Catch::Contains(", 3 reduce-scatters of ") &&
                 Catch::Contains("group model.layers.0: 199 parameters; param_dtype bfloat16, reduce_dtype float32, "
                                 "output_dtype none\n") &&
                 Catch::Contains("group root: 5,125 parameters; param_dtype bfloat16, "));
  CHECK_THAT(inspected({1, 2}, {.reshard = shard::Reshard::AfterBackward}),
             Catch::Contains(" 3 all-gathers of ") && Catch::Contains(", 3 reduce-scatters of "));
  CHECK_THAT(inspected({2, 2}), Catch::Contains("mesh: replicate 2 x shard 2\n") &&
                                    Catch::Contains(" 5 all-gathers of ") && Catch::Contains(", 3 all-reduces of ") &&
                                    Catch::Contains("(Replicate(), Shard(0))  local [3] on rank 0, [2] on rank 1\n"));
  CHECK_THAT(inspected({2, 1}), Catch::Contains(" 2 all-reduces of ") &&
                                    Catch::Contains("group model.layers.0..1: 398 parameters; ") &&
                                    Catch::Contains("[5]  Replicate()\n"));
}

}  // namespace trainyard::train
