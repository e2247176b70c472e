#include "config/print.h"

#include <catch2/catch.hpp>

#include "config/schema.h"

namespace trainyard::config {
namespace {

/// All keys, also those that ranks need not agree on.
std::vector<Value> all_values(const Config& config) {
  std::vector<Value> values;
  for (const Key& key : keys()) values.push_back(key.get(config));
  return values;
}

TEST_CASE("the printed configuration tells each value's origin and loads again to the same", "[config]") {
  const Loaded loaded = load({"--sample.prompt", "a \"quote\" \\ é\n\tend # not a comment", "--optimizer.lr=1e-5",
                              "--model.preset=null", "--data.field=- x: y", "--metrics.dir=~"},
                             {{"train.yaml", "training:\n  steps: 5\ncomm: {timeout: 1500ms}\n"}});
  const std::string printed = print_config(loaded);
  CHECK_THAT(printed, Catch::Contains("training:\n  steps: 5                                        # train.yaml:2\n"));
  CHECK_THAT(printed, Catch::Contains("  lr: 1e-05                                       # flag\n"));
  CHECK_THAT(printed, Catch::Contains("  batch_size: 8                                   # default\n"));
  CHECK(all_values(load({}, {{"printed", printed}}).config) == all_values(loaded.config));
}

TEST_CASE("a printed configuration names every key", "[config]") {
  const Loaded again = load({}, {{"printed", print_config(Loaded{})}});
  for (const Key& key : keys()) CHECK(again.origins.contains(key.full_name()));
}

TEST_CASE("the hash depends on what ranks must agree on and on nothing else", "[config]") {
  const std::string base = hash(Config{});
  CHECK(base.size() == 16);
  CHECK(hash(Config{}) == base);
  Config own_folders;
  own_folders.metrics.dir = "elsewhere";
  own_folders.device.threads = 3;
  own_folders.data.cache_dir = "/scratch";
  CHECK(hash(own_folders) == base);
  Config other;
  other.optimizer.lr = 3.0000000000000003e-4;
  CHECK(hash(other) != base);
}

TEST_CASE("the first difference of two configurations is named with both values", "[config]") {
  Config mine, theirs;
  CHECK_FALSE(first_difference(shared_text(mine), shared_text(theirs)));
  theirs.training.steps = 7;
  theirs.parallel.strategy = Strategy::NoShard;
  const auto difference = first_difference(shared_text(mine), shared_text(theirs));
  REQUIRE(difference);
  CHECK(difference->key == "parallel.strategy");
  CHECK(difference->mine == "full_shard");
  CHECK(difference->theirs == "no_shard");
  const auto newer = first_difference("a.b = 1\n", "a.b = 1\na.c = 2\n");
  REQUIRE(newer);
  CHECK(newer->key == "a.c");
  CHECK(newer->mine == "absent");
}

}  // namespace
}  // namespace trainyard::config
