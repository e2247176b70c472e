#include "dialects/questionnaire.h"

#include <catch2/catch.hpp>

#include <sstream>

#include "unit/dialects/support.h"

namespace trainyard::dialects {
namespace {

std::string answers(const std::string& lines) {
  std::istringstream in(lines);
  std::ostringstream out;
  return ask(in, out);
}

TEST_CASE("questionnaire: the defaults are FSDP2 with everything sharded, and load", "[dialects]") {
  const std::string yaml = answers(std::string(16, '\n'));
  CHECK_THAT(yaml, Catch::Contains("distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n"
                                   "  fsdp_reshard_after_forward: true\n"));
  Files files;
  CHECK(load_file(files, "default_config.yaml", yaml).config.parallel.strategy == config::Strategy::FullShard);
}

TEST_CASE("questionnaire: answers are numbers or words, and what does not fit is asked again", "[dialects]") {
  // multi-CPU, 1 machine, FSDP, version 1, SHARD_GRAD_OP, no offload, own blocks, no prefetch, sharded, lean, no
  // checkpointing, 2 processes, bf16.
  std::istringstream in("0\n1\nyes\n1\nSHARD_GRAD\nSHARD_GRAD_OP\nno\n0\nyes\n2\nmaybe\nno\n0\nyes\nno\n0\n2\nbf16\n");
  std::ostringstream out;
  const std::string yaml = ask(in, out);
  CHECK_THAT(out.str(), Catch::Contains("What should be your sharding strategy?\n  [0] FULL_SHARD\n"));
  CHECK_THAT(out.str(), Catch::Contains("That is no answer to it."));
  Files files;
  const config::Config config = load_file(files, "default_config.yaml", yaml).config;
  CHECK(config.parallel.strategy == config::Strategy::ShardGradOp);
  CHECK(config.parallel.param_dtype == config::Precision::BFloat16);
  CHECK_THAT(yaml, Catch::Contains("num_processes: 2\n"));
}

TEST_CASE("questionnaire: answers that end too early are an error", "[dialects]") {
  CHECK(config::error_of([] { answers("0\n"); }) == "config: the answers ended before the questions did");
}

}  // namespace
}  // namespace trainyard::dialects
