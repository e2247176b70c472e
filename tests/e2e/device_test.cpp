// What a user of a GPU types, to the program with the kernels for CUDA on the host (tests/support/host_cuda): a machine
// with one device.
#include <catch2/catch.hpp>

#include <cmath>

#include "failure.h"

namespace trainyard::test {
namespace {

Ended on_host_cuda(const Words& words) {
  return run({Words{TRAINYARD_ON_HOST_CUDA} + words});
}

Ended done(const Words& words) {
  Ended ended = on_host_cuda(words);
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  return ended;
}

/// A run to `steps`, from where the last one ended.
Ended train_to(const SmallJob& job, int steps, const std::string& device) {
  return done(job.train(steps, {"--device", device, "--optimizer.decay", "constant"}));
}

}  // namespace

TEST_CASE("device: a run that moves to a GPU and back goes on as one that stays on the CPU, and each can sample it") {
  const SmallJob moved, stayed;
  for (const int step : {1, 2, 3}) train_to(stayed, step, "cpu");
  train_to(moved, 1, "cpu");
  const Ended there = train_to(moved, 2, "cuda");
  CHECK_THAT(there.out, Catch::Contains("Resuming at epoch 0, after step 1"));
  train_to(moved, 3, "cpu");
  const auto seen = moved.losses(), expected = stayed.losses();
  REQUIRE(seen.size() == expected.size());
  for (size_t i = 0; i < seen.size(); ++i) CHECK(std::abs(seen[i] / expected[i] - 1) < 1e-5);

  const auto text_of = [&moved](const std::string& device) {
    return done({"generate", "--checkpoint", moved.checkpoints().string(), "--prompt", "3 times", "--max-new-tokens",
                 "3", "--temperature", "0", "--device", device})
        .out;
  };
  CHECK(text_of("cuda") == text_of("cpu"));
}

TEST_CASE("device: steps that are one graph give the same losses, and it is said what cannot be part of one") {
  const SmallJob with, without;
  const Words cuda{"--device", "cuda"}, graphs{"--device.cuda_graphs", "true"};
  const Ended there = done(with.train(4, cuda + graphs));
  CHECK_THAT(there.err, Catch::Contains("forward and backward are one CUDA graph of "));
  done(without.train(4, cuda));
  CHECK(with.losses() == without.losses());
  check_failure(on_host_cuda(with.train(5, graphs + Words{"--device", "cpu"})), 2,
                {"device.cuda_graphs", "this run computes on the CPU"});
  check_failure(on_host_cuda(with.train(5, cuda + graphs + Words{"--parallel.offload", "true"})), 2,
                {"device.cuda_graphs", "parallel.offload is true"});
}

TEST_CASE("device: what does not fit a GPU ends with what holds its memory, and more ranks than GPUs do not start") {
  const SmallJob job;
  const Words large{"--model.hidden_size", "8192", "--model.intermediate_size", "32768"};
  check_failure(on_host_cuda(job.train(1, Words{"--device", "cuda"} + large)), 2, {"cuda:0: ", " for parameters"});
  const Ended crowded = on_host_cuda(Words{"launch", "--nproc-per-node", "2"} + job.train(1, {"--device", "cuda"}));
  CHECK(crowded.code == 2);
  CHECK_THAT(
      crowded.err,
      Catch::Contains("LOCAL_WORLD_SIZE is 2, but the ranks of this node see 1 GPU, and each needs one to itself"));
}

}  // namespace trainyard::test
