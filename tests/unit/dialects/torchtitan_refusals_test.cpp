// What of torchtitan's files is refused, and how it is said.
#include <catch2/catch.hpp>

#include "unit/dialects/support.h"

namespace trainyard::dialects {
namespace {

TEST_CASE("torchtitan: what is not offered is refused by key, all of it in one line", "[dialects]") {
  struct Case {
    const char* toml;
    const char* message;
  };
  const std::vector<Case> cases{
      {"[parallelism]\nexpert_parallel_degree = 8\nexpert_tensor_parallel_degree = 2\n",
       "a.toml:2: parallelism.expert_parallel_degree is 8: models with experts are not offered; use 1; refused "
       "besides: "
       "parallelism.expert_tensor_parallel_degree"},
      {"[parallelism]\npipeline_parallel_degree = 2\n",
       "a.toml:2: parallelism.pipeline_parallel_degree is 2: pipeline parallelism is not offered; use 1"},
      {"[parallelism]\ncontext_parallel_degree = 2\ncontext_parallel_rotate_method = \"ring\"\n",
       "a.toml:3: parallelism.context_parallel_rotate_method is 'ring'; use allgather or alltoall"},
      {"[parallelism]\ncontext_parallel_degree = 2\ncontext_parallel_load_balancer = \"ptrr\"\n",
       "a.toml:3: parallelism.context_parallel_load_balancer is 'ptrr'; use headtail, or an empty word for none"},
      {"[model]\nconverters = [\"mx\"]\n",
       "a.toml:2: model.converters names 'mx'; quantize.linear.float8 is what is offered"},
      {"[model]\nconverters = [\"quantize.linear.float8\"]\n[quantize.linear.float8]\nfilter_fqns = "
       "[\"auto_filter_small_kn\"]\n",
       "a.toml:4: quantize.linear.float8.filter_fqns is auto_filter_small_kn, which goes by timings of another "
       "library"},
      {"[training]\nlocal_batch_sise = 3\n",
       "a.toml:2: unknown key training.local_batch_sise of torchtitan; did you mean training.local_batch_size?"},
      {"[tranining]\n",
       "a.toml:1: unknown key tranining of torchtitan; docs/coming-from-pytorch.md lists those that "
       "are known"},
      {"[training]\nsteps = 3\nsteps = 4\n",
       "a.toml:3:9: malformed TOML: Error while parsing key-value pair: cannot redefine existing integer 'steps'"},
      {"[training]\nsteps = 3 \xC3\xA9\n",
       "a.toml:2:11: malformed TOML: Error while parsing key-value pair: expected a comment or whitespace, saw"},
      {"[model]\nflavor = \"9B\"\n", "a.toml:2: model.name llama3 with model.flavor 9B is no model here; known are"},
      {"[training]\nlocal_batch_size = 2\nbatch_size = 3\n",
       "a.toml:3: training.batch_size 3 contradicts training.local_batch_size 2 (a.toml:2): training.batch_size would "
       "be 2 and 3; keep one"},
      {"[lr_scheduler]\ndecay_ratio = 2.0\n",
       "a.toml:2: lr_scheduler.decay_ratio is '2'; it must be a number, at least 0 and at most 1"},
      {"[lr_scheduler]\ntotal_steps = 5\n",
       "a.toml:2: lr_scheduler.total_steps is 5, but the schedule ends with training.steps, which is 10000; leave it "
       "out, or stop early with SIGTERM"},
      {"[training]\nstepz = 3\ndtype = \"float16\"\n[model]\nflavor = \"9B\"\nflavr = \"8B\"\n",
       "a.toml:2: unknown key training.stepz of torchtitan; did you mean training.steps?; unknown besides: "
       "model.flavr; "
       "refused besides: training.dtype, model.flavor"},
      {"[training]\nsteps = \"many\"\n",
       "a.toml:2: training.steps (training.steps) is 'many'; it must be a whole number"},
  };
  for (const Case& each : cases) {
    INFO(each.toml);
    CHECK_THAT(error_of_file("a.toml", each.toml), Catch::StartsWith(each.message));
  }
}

}  // namespace
}  // namespace trainyard::dialects
