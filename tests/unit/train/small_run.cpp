#include "small_run.h"

#include <nlohmann/json.hpp>

#include "assemble/device.h"
#include "assemble/loaders.h"
#include "ops/threads.h"

namespace trainyard::test {

using namespace train;

nlohmann::json FormulaLoader::state() const {
  return nullptr;
}

Ran run_rank(comm::Communicator& comm, const config::Config& config, const models::ModelConfig& model, BatchShape batch,
             int64_t steps, Device device) {
  ops::set_threads(1);
  const RunSpec spec = resolve(config::Loaded{config, {}, {}}, Ranks{comm.world(), 0}, device);
  const auto ledger = std::make_shared<MemoryLedger>(spec.on_host);
  const MemoryScope scope(ledger);
  const data::Place place = place_of(spec.sharding.mesh, comm.rank());
  const auto loader =
      rows_of_rank(std::make_unique<FormulaLoader>(batch, model.vocab_size, config.training.accumulation_steps,
                                                   static_cast<int>(place.rank), static_cast<int>(place.world)),
                   spec.sharding, comm.rank());
  ShardedModel sharded = shard_model(model, comm, spec.sharding);
  set_recompute(*sharded.model, spec.recompute);
  fill_random(*sharded.engine, 7);
  optim::AdamW optimizer(*sharded.engine, config.optimizer);
  optim::LossScaler scaler(loss_scaling_of(spec.loss_scale, *sharded.engine));
  ledger->restart_peak();
  Ran ran;
  Trainer trainer({comm, *sharded.model, *sharded.engine, optimizer, scaler, *loader},
                  {.total_steps = steps,
                   .accumulation_steps = config.training.accumulation_steps,
                   .clip_grad_norm = config.training.clip_grad_norm,
                   .schedule = optim::schedule_of(config.optimizer, steps),
                   .dropout_seed = config.training.seed,
                   .deterministic = config.training.deterministic,
                   .graphs = config.device.cuda_graphs == config::CudaGraphs::Always},
                  {.asked_to_stop = [] { return false; },
                   .on_step =
                       [&ran](const StepResult& result) {
                         ran.losses.push_back(result.loss);
                         ran.norms.push_back(result.grad_norm);
                         ran.lrs.push_back(result.lr);
                         if (result.loss_scale) ran.loss_scales.push_back(*result.loss_scale);
                         ran.skipped.push_back(result.skipped);
                         ran.times.push_back(result.times);
                         ran.slow.push_back(result.slow);
                       },
                   .is_checkpoint_due = [](int64_t) { return false; },
                   .save = [](const Progress&) {}});
  Progress progress;
  trainer.run(progress);
  ran.at_peak = ledger->at_peak();
  ran.most = ledger->most();
  for (const auto& shard : sharded.engine->shards()) {
    const Tensor value = on_device(shard.value, {});
    ran.weights.insert(ran.weights.end(), value.values<float>().begin(), value.values<float>().end());
  }
  return ran;
}

Ran run_small(const config::Config& config, const models::ModelConfig& model, int world, BatchShape batch,
              int64_t steps) {
  const Device device = device_of_rank(device_kind_of(config.device.kind), 0, 1);  // all ranks on the same
  return run_ranks(world, [&](comm::Communicator& comm) { return run_rank(comm, config, model, batch, steps, device); })
      .front();
}

}  // namespace trainyard::test
