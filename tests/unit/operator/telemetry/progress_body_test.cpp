#include "telemetry/progress_body.h"

#include <catch2/catch.hpp>

#include "http/json_body.h"

using namespace trainyard;
using namespace trainyard::telemetry;

TEST_CASE("progress body: every field is read, what is absent keeps its default", "[progress]") {
  const TimePoint now{std::chrono::seconds(1000)};
  const api::ProgressPost post = parse_post(R"({"step": 120, "totalSteps": 500, "loss": 3.25, "tokensPerSecond": 1234.5,
                                   "checkpointStep": 100, "silentRanks": [3, 7], "generation": 2, "later": {},
                                   "checkpointError": "No space left on device", "metricsError": "m",
                                   "configChanged": "train.yaml: gone", "worldSize": 8})",
                               now);
  CHECK(post.progress.step == 120);
  CHECK(post.progress.total_steps == 500);
  CHECK(post.progress.loss == 3.25);
  CHECK(post.progress.tokens_per_second == 1234.5);
  CHECK(post.progress.checkpoint_step == 100);
  CHECK(post.progress.silent_ranks == std::vector{3, 7});
  CHECK(post.progress.updated == now);
  CHECK(post.progress.checkpoint_error == "No space left on device");
  CHECK(post.progress.metrics_error == "m");
  CHECK(post.progress.config_changed == "train.yaml: gone");
  CHECK(post.world_size == 8);
  CHECK(post.generation == 2);

  const api::ProgressPost least = parse_post(R"({"step": 0})", now);
  CHECK_FALSE(least.progress.loss);  // absent is not 0
  CHECK_FALSE(least.progress.tokens_per_second);
  CHECK(least.progress.checkpoint_step == -1);
  CHECK(least.progress.silent_ranks.empty());
  CHECK(least.progress.config_changed.empty());  // of an older trainer
  CHECK_FALSE(least.generation.has_value());
}

TEST_CASE("progress body: a wrong value is refused with its key and what is allowed", "[progress]") {
  const auto [body, message] = GENERATE(table<const char*, const char*>({
      {R"([])", "the body is of type array; an object is expected"},
      {R"({})", "step is missing"},
      {R"({"step": "12"})", "step is of type string; an integer from 0 on is expected"},
      {R"({"step": -1})", "step is -1; an integer from 0 on is expected"},
      {R"({"step": 1.5})", "step is 1.5; an integer from 0 on is expected"},
      {R"({"step": null})", "step is null; an integer from 0 on is expected"},
      {R"({"step": 18446744073709551615})", "step is 18446744073709551615; an integer from 0 on is expected"},
      {R"({"step": 1, "loss": "nan"})", "loss is of type string; a number is expected"},
      {R"({"step": 1, "checkpointStep": -2})", "checkpointStep is -2; an integer from -1 on is expected"},
      {R"({"step": 1, "checkpointError": 28})", "checkpointError is 28; a text is expected"},
      {R"({"step": 1, "configChanged": true})", "configChanged is true; a text is expected"},
      {R"({"step": 1, "silentRanks": 3})", "silentRanks is 3; a list of ranks is expected"},
      {R"({"step": 1, "silentRanks": [1, -3]})", "silentRanks is -3; a list of ranks is expected"},
      {R"({"step": 1, "generation": true})", "generation is true; an integer from 0 on is expected"},
  }));
  CHECK_THROWS_WITH(parse_post(body, {}), message);
}

TEST_CASE("progress body: more silent ranks than fit into a status are refused", "[progress]") {
  std::string ranks = "0";
  for (size_t i = 0; i < kMostSilentRanks; ++i) ranks += ",1";
  CHECK_THROWS_WITH(parse_post(R"({"step": 1, "silentRanks": [)" + ranks + "]}", {}),
                    "silentRanks has 257 ranks; 256 at most are taken");
}
