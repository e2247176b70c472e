#include "split_run.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "base/error.h"
#include "ops/cuda/matmul_scratch.h"

namespace trainyard::test {
namespace {

using namespace train;

struct Sent {
  int64_t messages = 0;
  double bytes = 0;
};

int data_ranks(const config::Config& config, int world) {
  return world / static_cast<int>(config.parallel.context * config.parallel.tensor);
}

Ran run_alone(config::Config config, const models::ModelConfig& model, int64_t rows, BatchShape batch) {
  config.parallel.context = config.parallel.tensor = 1;
  config.parallel.strategy = config::Strategy::FullShard;
  config.parallel.replicate = config.parallel.shard = -1;
  config.parallel.reshard_after_forward.clear();
  batch.rows = rows;
  return run_small(config, model, 1, batch);
}

/// What rank 0 sent in a step, by the name of the collective.
std::map<std::string, Sent> sent_by(const config::Config& config, const models::ModelConfig& model, int world,
                                    BatchShape batch) {
  constexpr int64_t kSteps = 2;
  std::map<std::string, Sent> sent;
  run_ranks(world, [&](comm::Communicator& comm) {
    std::mutex mutex;
    if (comm.rank() == 0)
      comm.on_collective([&](const comm::CollectiveRecord& record) {
        if (record.label == "agree" || record.label == "totals" || record.name == "split" || record.name == "barrier" ||
            record.label.starts_with("the colors of"))
          return;
        const std::lock_guard lock(mutex);
        sent[record.name].messages += 1;
        sent[record.name].bytes += static_cast<double>(record.bytes);
      });
    run_rank(comm, config, model, batch, kSteps, {});
    comm.barrier();
    comm.on_collective(nullptr);
  });
  for (auto& [name, of_all] : sent) of_all = {of_all.messages / kSteps, of_all.bytes / kSteps};
  return sent;
}

Hardware any_hardware(bool is_cpu) {
  Hardware hardware = accelerator("h100");  // rates do not matter here
  hardware.is_cpu = is_cpu;
  return hardware;
}

}  // namespace

Deviation deviation_from_one_rank(const config::Config& config, const models::ModelConfig& model, int world,
                                  BatchShape batch) {
  const Ran split = run_small(config, model, world, batch),
            one = run_alone(config, model, batch.rows * data_ranks(config, world), batch);
  Deviation most;
  for (size_t step = 0; step < one.losses.size(); ++step) {
    most.loss = std::max(most.loss, std::abs(split.losses.at(step) / one.losses.at(step) - 1));
    most.norm = std::max(most.norm, std::abs(split.norms.at(step) / one.norms.at(step) - 1));
  }
  return most;
}

void check_like_one_rank(const config::Config& config, const models::ModelConfig& model, int world, BatchShape batch,
                         double tolerance) {
  const Deviation most = deviation_from_one_rank(config, model, world, batch);
  CHECK(most.loss <= tolerance);
  CHECK(most.norm <= 20 * tolerance);
}

void check_sent_as_planned(const config::Config& config, const models::ModelConfig& model, int world,
                           BatchShape batch) {
  const Simulation simulation = simulate({config, {}, {}}, model, {world, world}, any_hardware(true), batch);
  std::map<std::string, Sent> planned;
  for (const auto& [name, traffic] : simulation.traffic) {
    if (name == "a few numbers") continue;
    Sent& of_name = planned[name.substr(0, name.find(' '))];
    of_name.messages += traffic.messages, of_name.bytes += traffic.bytes;
  }
  const auto sent = sent_by(config, model, world, batch);
  CHECK(sent.size() == planned.size());
  for (const auto& [name, of_name] : sent) {
    CAPTURE(name);
    CHECK(of_name.messages == planned[name].messages);
    CHECK(of_name.bytes == planned[name].bytes);
  }
}

MemoryUse check_memory_as_planned(const config::Config& config, const models::ModelConfig& model, int world,
                                  BatchShape batch) {
  const Ran ran = run_small(config, model, world, batch);
  const Hardware hardware = any_hardware(cuda_devices() == 0);
  const Simulation planned = simulate({config, {}, {}}, model, {world, world}, hardware, batch);
  const double of_library = hardware.is_cpu ? 0 : static_cast<double>(ops::cuda::kMostProductWorkspace);
  CHECK(static_cast<double>(planned.at_peak.total()) ==
        Approx(static_cast<double>(ran.at_peak.total())).epsilon(0.05).margin(of_library));
  return ran.most;
}

std::string refusal_of(const config::Config& config, const models::ModelConfig& model, int world) {
  try {
    const BatchShape batch{.rows = 1, .tokens = 8, .source = 8};
    static_cast<void>(simulate({config, {}, {}}, model, {world, world}, accelerator("h100"), batch));
    return "none";
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace trainyard::test
