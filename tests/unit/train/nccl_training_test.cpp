// Training whose ranks have a device each and talk over NCCL: on the stand-ins of tests/support/host_cuda.
#include <cuda_runtime.h>
#include <nccl.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <thread>

#include "small_run.h"
#include "support/connected_ranks.h"
#include "tiny_model.h"

namespace trainyard::train {
namespace {

using config::Strategy;
using namespace std::chrono_literals;

constexpr BatchShape kBatch{.rows = 1, .tokens = 5};
constexpr int64_t kSteps = 2;

/// What rank 0 saw.
test::Ran run_over_nccl(const config::Config& config, int world) {
  host_cuda::set_devices(world);
  const comm::Settings settings{.device = {DeviceKind::Cuda}, .user_buffers = config.comm.user_buffers};
  const auto ran = test::run_connected(world, settings, [&](comm::Communicator& comm, Device device) {
    return test::run_rank(comm, config, test::tiny_model(), kBatch, kSteps, device);
  });
  host_cuda::set_devices(1);
  return ran.front();
}

struct Job {
  const char* name;
  void (*change)(config::Config& config);
  double loss = 1e-5, norm = 2e-4;  ///< how far from the CPU, relative
};

const Job kJobs[] = {
    {"full_shard", [](config::Config&) {}},
    {"kept gathered", [](config::Config& config) { config.parallel.strategy = Strategy::ShardGradOp; }},
    {"replicated", [](config::Config& config) { config.parallel.strategy = Strategy::NoShard; }},
    {"accumulated", [](config::Config& config) { config.training.accumulation_steps = 2; }},
    {"state on the host", [](config::Config& config) { config.parallel.offload = true; }},
    {"bfloat16", [](config::Config& config) { config.parallel.param_dtype = config::Precision::BFloat16; }, 1e-2, 1e-1},
};

}  // namespace

TEST_CASE("nccl: a run over it takes the way of the same on the CPU", "[train]") {
  const Job& job = GENERATE(from_range(std::begin(kJobs), std::end(kJobs)));
  const int world = GENERATE(2, 3);
  CAPTURE(job.name, world);
  config::Config config;
  job.change(config);
  const test::Ran seen = run_over_nccl(config, world);
  config.device.kind = config::DeviceChoice::Cpu;
  const test::Ran expected = test::run_small(config, test::tiny_model(), world, kBatch, kSteps);
  REQUIRE(seen.losses.size() == kSteps);
  for (size_t step = 0; step < kSteps; ++step) {
    CHECK(seen.losses[step] == Approx(expected.losses[step]).epsilon(job.loss));
    CHECK(seen.norms[step] == Approx(expected.norms[step]).epsilon(job.norm));
  }
}

TEST_CASE("nccl: a slow device is named, and that the others wait for it is no computing of theirs", "[train]") {
  constexpr int kWorld = 3, kSlow = 1, kManySteps = 8, kTimed = 6;  // a device tells of the step before
  host_cuda::look_on([](const host_cuda::Done& done) {
    if (done.device == kSlow && done.kind == host_cuda::Work::Kernel) std::this_thread::sleep_for(1ms);
  });
  host_cuda::set_devices(kWorld);
  const auto ran = test::run_connected(kWorld, {.device = {DeviceKind::Cuda}}, [&](auto& comm, Device device) {
    return test::run_rank(comm, {}, test::tiny_model(), kBatch, kManySteps, device);
  });
  host_cuda::set_devices(1);
  host_cuda::look_on(nullptr);
  const test::Ran& first = ran.front();  // what all have
  REQUIRE(first.slow.size() == kManySteps);
  int named = 0, timed = 0;
  for (size_t step = 0; step < kManySteps; ++step) {
    const train::StepTimes& times = first.times[step];
    named += first.slow[step] && first.slow[step]->rank == kSlow;
    timed += times.compute > 20 && times.compute > 2 * times.communication;  // the slow one's: it waits for nobody
  }
  CHECK(named >= kTimed - 2);  // some may be disturbed
  CHECK(timed >= kTimed - 2);
}

TEST_CASE("nccl: registered buffers change no bit of a run, and keep NCCL's rules", "[train]") {
  const Job& job = GENERATE(from_range(std::begin(kJobs), std::end(kJobs)));
  const int world = GENERATE(2, 3);
  CAPTURE(job.name, world);
  config::Config config;
  job.change(config);
  const test::Ran expected = run_over_nccl(config, world);
  static_cast<void>(host_nccl::misuses());
  config.comm.user_buffers = true;
  const test::Ran seen = run_over_nccl(config, world);
  CHECK(seen.losses == expected.losses);
  CHECK((seen.weights == expected.weights));
  CHECK(host_nccl::misuses() == std::vector<std::string>{});
  CHECK(host_nccl::registrations() == 0);
}

TEST_CASE("offloaded gradients: the host waits for a step's no more often where there are more layers", "[train]") {
  const auto waits = [](int64_t layers, int64_t steps) {
    config::Config config;
    config.device.kind = config::DeviceChoice::Cuda;
    config.parallel.offload = true;
    models::ModelConfig model = test::tiny_model();
    model.layers = layers;
    const size_t before = host_cuda::waits();
    test::run_small(config, model, 1, kBatch, steps);
    return host_cuda::waits() - before;
  };
  CHECK(waits(4, 3) - waits(4, 2) == waits(2, 3) - waits(2, 2));
}

TEST_CASE("nccl: a mesh of two by two has a communicator for each of its dimensions", "[train]") {
  config::Config config;
  config.parallel.strategy = Strategy::HybridShard;
  config.parallel.replicate = 2, config.parallel.shard = 2;
  config.comm.user_buffers = true;
  static_cast<void>(host_nccl::misuses());
  const test::Ran seen = run_over_nccl(config, 4);
  config.device.kind = config::DeviceChoice::Cpu;
  const test::Ran expected = test::run_small(config, test::tiny_model(), 4, kBatch, kSteps);
  CHECK(seen.losses.back() == Approx(expected.losses.back()).epsilon(1e-5));
  CHECK(seen.norms.back() == Approx(expected.norms.back()).epsilon(2e-4));
  CHECK(host_nccl::misuses() == std::vector<std::string>{});
}

}  // namespace trainyard::train
