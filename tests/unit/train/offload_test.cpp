// What goes by way of host memory beside compute, on the stand-in of tests/support/host_cuda, whose streams can be
// late.
#include <cuda_runtime.h>

#include <catch2/catch.hpp>

#include "autograd/functions.h"
#include "autograd/recompute.h"
#include "small_run.h"
#include "tensor/device_memory.h"
#include "tiny_model.h"

namespace trainyard::train {
namespace {

using config::CheckpointingMode;

constexpr Device kOffloading{DeviceKind::Cuda, 0};

struct Offloaded {
  std::string name;
  std::function<void(config::Config&)> change;
};

const std::vector<Offloaded>& ways() {
  static const std::vector<Offloaded> ways{{"state", [](auto& c) { c.parallel.offload = true; }},
                                           {"state, bfloat16",
                                            [](auto& c) {
                                              c.parallel.offload = true;
                                              c.parallel.param_dtype = config::Precision::BFloat16;
                                            }},
                                           {"state, accumulated",
                                            [](auto& c) {
                                              c.parallel.offload = c.training.sync_every_micro_batch = true;
                                              c.training.accumulation_steps = 2;
                                            }},
                                           {"blocks' inputs",
                                            [](auto& c) {
                                              c.activation_checkpointing = {CheckpointingMode::Full, 1, true};
                                            }},
                                           {"blocks' products",
                                            [](auto& c) {
                                              c.activation_checkpointing = {CheckpointingMode::Selective, 1, true};
                                            }},
                                           {"both", [](auto& c) {
                                              c.parallel.offload = true;
                                              c.activation_checkpointing = {CheckpointingMode::Selective, 1, true};
                                            }}};
  return ways;
}

test::Ran run_offloaded(const Offloaded& way, int64_t steps = 2) {
  config::Config config;
  config.device.kind = config::DeviceChoice::Cuda;
  way.change(config);
  models::ModelConfig model = test::tiny_model();
  model.layers = 2;  // so that none has to wait for an earlier one to leave
  return test::run_small(config, model, 1, {.rows = 2, .tokens = 7}, steps);
}

}  // namespace

TEST_CASE("offload: copies that come as late as they may change no bit", "[train]") {
  const Offloaded& way = GENERATE(from_range(ways()));
  CAPTURE(way.name);
  const test::Ran expected = run_offloaded(way);
  host_cuda::delay(true);
  const test::Ran seen = run_offloaded(way);
  host_cuda::delay(false);
  CHECK(seen.losses == expected.losses);
  CHECK(seen.norms == expected.norms);
  CHECK((seen.weights == expected.weights));
}

TEST_CASE("offload: activations take no more memory where the host is ahead of the device", "[train]") {
  const auto step = [] {
    autograd::Tape tape;
    autograd::Variable x(Tensor::zeros({3 << 18}, DType::Float32, kOffloading), &tape);
    const auto twice = [](const autograd::Variable& v) { return autograd::add(v, v); };
    for (int region = 0; region < 4; ++region) x = autograd::checkpoint(x, twice, {.offload = true});
    x.gradient()->add(Tensor::zeros({3 << 18}, DType::Float32, kOffloading));
    tape.backward();
  };
  const auto most_reserved = [&](bool is_ahead) {
    DeviceMemory &there = memory_of(kOffloading), &pinned = *pinned_memory();
    for (DeviceMemory* const memory : {&there, &pinned}) {
      memory->allocator().trim();
      memory->allocator().restart_peak();
    }
    host_cuda::hold_all(is_ahead);
    for (int i = 0; i < 3; ++i) step();
    host_cuda::hold_all(false);
    return std::pair(there.statistics().most_reserved, pinned.statistics().most_reserved);
  };
  CHECK(most_reserved(true) == most_reserved(false));
}

}  // namespace trainyard::train
