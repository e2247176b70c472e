#include "plan/simulation.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "assemble/loaders.h"
#include "assemble/model_config.h"
#include "base/error.h"
#include "checkpoint/division.h"
#include "comm/dry_run.h"
#include "config/check.h"
#include "config/strategy.h"
#include "data/loader.h"
#include "data/pairs.h"
#include "metrics/trace.h"
#include "optim/adamw.h"
#include "optim/schedule.h"
#include "train/snapshot.h"
#include "train/trainer.h"

namespace trainyard::train {
namespace {

/// Batches of the right shape that say nothing.
class EmptyLoader final : public data::Loader {
 public:
  EmptyLoader(BatchShape shape, int64_t sequences_per_step) : shape_(shape), sequences_per_step_(sequences_per_step) {}

  data::Batch next() override {
    data::Batch batch = shape_.image_size > 0 ? images() : tokens();
    batch.sequences.assign(static_cast<size_t>(shape_.rows), 0);
    batch.valid_tokens = shape_.rows * shape_.tokens;
    return batch;
  }
  [[nodiscard]] nlohmann::json state() const override { return nullptr; }
  void load_state(const nlohmann::json&) override {}
  [[nodiscard]] int64_t sequences_seen() const override { return 0; }
  [[nodiscard]] int64_t sequences_per_epoch() const override { return sequences_per_step_; }
  [[nodiscard]] int64_t sequences_per_step() const override { return sequences_per_step_; }
  [[nodiscard]] int64_t sequence_length() const override { return shape_.tokens; }
  [[nodiscard]] int64_t source_length() const override { return shape_.source; }

 private:
  [[nodiscard]] data::Batch images() const {
    return {.targets = Tensor::zeros({shape_.rows}, DType::Int32),
            .features = Tensor::zeros({shape_.rows, shape_.image_size, shape_.image_size}, DType::Float32)};
  }
  [[nodiscard]] data::Batch tokens() const {
    const auto ids = [this](int64_t tokens) { return Tensor::zeros({shape_.rows, tokens}, DType::Int32); };
    data::Batch batch{.input_ids = ids(shape_.source > 0 ? shape_.source : shape_.tokens),
                      .targets = ids(shape_.tokens)};
    if (shape_.source == 0) return batch;
    batch.input_lengths = Tensor::empty({shape_.rows}, DType::Int32);
    std::ranges::fill(batch.input_lengths.values<int32_t>(), static_cast<int32_t>(shape_.source));
    return batch;
  }

  BatchShape shape_;
  int64_t sequences_per_step_;
};

/// Whether any group does: the faster units are then what the step is held against.
bool computes_in_half(const shard::Engine& engine) {
  return std::ranges::any_of(engine.groups(),
                             [](const auto& group) { return group->precision().param_dtype != DType::Float32; });
}

/// The copies in which an asynchronous checkpoint waits to be written (checkpoint/background_saver.h).
std::vector<Tensor> staged(const Parts& parts) {
  const MemoryKindScope scope(MemoryKind::Offloaded);
  std::vector<int> ranks(static_cast<size_t>(parts.world.world()));
  std::iota(ranks.begin(), ranks.end(), 0);
  const checkpoint::Snapshot own = checkpoint::own_part(snapshot_of(parts, {}, {}), parts.world.rank(), ranks);
  std::vector<Tensor> copies;
  for (const auto* const shards : {&own.model, &own.optimizer})
    for (const checkpoint::Shard& shard : *shards)
      if (shard.local.defined()) copies.push_back(Tensor::empty(shard.local.shape(), shard.local.dtype()));
  return copies;
}

/// What two steps of `sharded` showed, each of `rows` of the batch's shape over all ranks.
struct TwoSteps {
  const Timeline& timeline;
  const MemoryLedger& ledger;
  const ShardedModel& sharded;
  BatchShape batch;
  int64_t rows;
};

Simulation seen_in(const TwoSteps& steps, const RunSpec& spec, const models::ModelConfig& model,
                   const Placement& placement, const Hardware& hardware) {
  const ShardedModel& sharded = steps.sharded;
  const Timeline& timeline = steps.timeline;
  Simulation seen{.parameters = models::parameter_count(model),
                  .spec = spec,
                  .at_peak = steps.ledger.at_peak(),
                  .most = steps.ledger.most(),
                  .traffic = timeline.traffic(),
                  .seconds = timeline.seconds(),
                  .waited_seconds = timeline.waited_seconds(),
                  .computed_flops = timeline.matrix_flops(),
                  .model_flops = models::flops_per_row(model, {steps.batch.tokens, steps.batch.source}) *
                                 static_cast<double>(steps.rows) / placement.world,
                  .peak_flops = computes_in_half(*sharded.engine) ? hardware.half_flops : hardware.float_flops,
                  .tokens_per_step = steps.rows * steps.batch.tokens};
  if (sharded.float8) seen.float8 = described(*sharded.float8);
  if (sharded.adapters) seen.adapters = described(*sharded.adapters);
  for (const auto& group : sharded.engine->groups()) seen.groups.push_back(group->label());
  for (const shard::ParameterShard& shard : sharded.engine->shards())
    if (shard.parameter->is_frozen()) seen.frozen += count_of(shard.parameter->whole_shape());
  return seen;
}

/// Every micro-batch of two steps.
Simulation simulate_whole(const config::Config& config, const RunSpec& spec, const models::ModelConfig& model,
                         const Placement& placement, const Hardware& hardware, BatchShape batch) {
  Timeline timeline(hardware, placement, spec.sharding.mesh);
  const auto ledger = std::make_shared<MemoryLedger>(spec.on_host);
  const MemoryScope memory(ledger);
  const DryRunScope dry(timeline);
  const metrics::AttachTrace untraced(nullptr, "");  // a profile is of steps that were made

  const auto world = comm::make_dry_run(placement.world, timeline);
  ShardedModel sharded = shard_model(model, *world, spec.sharding);
  set_recompute(*sharded.model, spec.recompute);
  optim::AdamW optimizer(*sharded.engine, config.optimizer);
  const MeshSize& mesh = spec.sharding.mesh;
  const int64_t rows_a_step = batch.rows * spec.batch.accumulation_steps * mesh.data_ranks();
  const auto loader = rows_of_rank(std::make_unique<EmptyLoader>(batch, rows_a_step), spec.sharding, 0);
  optim::LossScaler scaler(loss_scaling_of(spec.loss_scale, *sharded.engine));
  const Parts parts{*world,
                    *sharded.model,
                    *sharded.engine,
                    optimizer,
                    scaler,
                    *loader,
                    sharded.adapters ? &*sharded.adapters : nullptr};
  std::vector<Tensor> copies;
  if (config.checkpoint.enabled && config.checkpoint.async) copies = staged(parts);
  ledger->restart_peak();

  // The first step learns the order in which groups come; from the second on the next ones are gathered ahead.
  constexpr int64_t kSteps = 2;
  Trainer trainer(parts,
                  {.total_steps = kSteps,
                   .accumulation_steps = spec.batch.accumulation_steps,
                   .clip_grad_norm = config.training.clip_grad_norm,
                   .schedule = optim::schedule_of(config.optimizer, kSteps),
                   .deterministic = config.training.deterministic},
                  {.asked_to_stop = [] { return false; },
                   .on_step =
                       [&timeline](const StepResult& result) {
                         if (result.step < kSteps) timeline.restart();
                       },
                   .is_checkpoint_due = [](int64_t) { return false; },
                   .save = [](const Progress&) {}});
  Progress progress;
  trainer.run(progress);

  return seen_in({timeline, *ledger, sharded, batch, rows_a_step}, spec, model, placement, hardware);
}

/// What `more` says, with `times` of its difference to `less` again.
double further(double less, double more, double times) {
  return more + times * (more - less);
}

/// Micro-batches between the first and the last of a step are all alike.
Simulation with_more_micro_batches(const Simulation& less, const Simulation& more, int64_t count) {
  const auto times = static_cast<double>(count);
  Simulation seen = more;
  for (auto& [name, traffic] : seen.traffic) {
    const auto before = less.traffic.find(name);
    const Traffic fewer = before == less.traffic.end() ? Traffic{} : before->second;
    traffic.messages += count * (traffic.messages - fewer.messages);
    traffic.bytes = further(fewer.bytes, traffic.bytes, times);
  }
  seen.seconds = further(less.seconds, more.seconds, times);
  seen.waited_seconds = further(less.waited_seconds, more.waited_seconds, times);
  seen.computed_flops = further(less.computed_flops, more.computed_flops, times);
  seen.model_flops = further(less.model_flops, more.model_flops, times);
  seen.tokens_per_step += count * (more.tokens_per_step - less.tokens_per_step);
  // The batches of a step are there from its beginning.
  const size_t batch =
      more.at_peak[MemoryKind::Other] - std::min(less.at_peak[MemoryKind::Other], more.at_peak[MemoryKind::Other]);
  for (MemoryUse* const use : {&seen.at_peak, &seen.most})
    (*use)[MemoryKind::Other] += static_cast<size_t>(count) * batch;
  return seen;
}

}  // namespace

uint64_t Simulation::device_bytes() const {
  uint64_t bytes = at_peak.total();
  for (const MemoryKind kind : spec.on_host) bytes -= at_peak[kind];
  return bytes;
}

uint64_t Simulation::host_bytes() const {
  uint64_t bytes = 0;
  for (const MemoryKind kind : spec.on_host) bytes += most[kind];
  return bytes;
}

BatchShape batch_shape_of(const BatchSize& batch, const config::Data& data, const models::ModelConfig& model) {
  switch (models::learns_from(model)) {
    case models::LearnsFrom::Text:
      return {batch.rows, batch.sequence_length};
    case models::LearnsFrom::Pairs:
      return {batch.rows, data::padded_length(data.max_target_length, data.pad_to_multiple_of),
              data::padded_length(data.max_source_length, data.pad_to_multiple_of)};
    case models::LearnsFrom::Images:
      return {.rows = batch.rows, .tokens = 1, .image_size = model.cnn.image_size};
  }
  throw std::logic_error("batch_shape_of: a model learns from something");
}

Ranks ranks_of(const Placement& placement) {
  const bool are_nodes_alike = placement.world % placement.ranks_per_node == 0;
  return {.world = placement.world, .a_node = are_nodes_alike ? placement.ranks_per_node : 0};
}

Placement least_placement(const config::Config& config) {
  const config::Parallel& parallel = config.parallel;
  const auto given = [](int64_t size, int64_t otherwise) { return size > 0 ? size : otherwise; };
  const int64_t nodes = config::is_copy_a_node(parallel) ? 2 : 1;
  const int64_t together = config::post_forward_ranks(parallel).value_or(1);
  const int64_t shard = given(parallel.shard, std::max(together, nodes));
  const int64_t replicate = given(parallel.replicate, nodes);
  const int64_t ranks_per_node = shard * parallel.ranks_sharing_rows();
  return {.world = static_cast<int>(replicate * ranks_per_node), .ranks_per_node = static_cast<int>(ranks_per_node)};
}

void check_ranks(const config::Loaded& loaded, const Placement& placement) {
  const RunSpec spec = resolve(config::for_world(loaded, placement.world), ranks_of(placement), {});
  // This comes before the dry run, in which nothing is read.
  const models::ModelConfig model = models::for_training(model_config_of(loaded.config.model));
  const Hardware any;
  Timeline timeline(any, placement, spec.sharding.mesh);
  const DryRunScope dry(timeline);
  const auto world = comm::make_dry_run(placement.world, timeline);
  static_cast<void>(shard_model(model, *world, spec.sharding));
}

void check_on_one_host(const config::Loaded& loaded, int ranks) {
  require_text_files(loaded);
  check_ranks(loaded, {.world = ranks, .ranks_per_node = ranks});
}

Simulation simulate(const config::Loaded& loaded, const models::ModelConfig& model, const Placement& placement,
                   const Hardware& hardware, BatchShape batch) {
  constexpr int64_t kFew = 3;
  if (loaded.config.float8.recipe != config::Float8Recipe::None && hardware.float8_flops == 0)
    throw InputError(fmt::format("{} is given, but {} has no units for 8 bits; leave it out",
                                 loaded.subject("float8.recipe"), hardware.name));
  const Device device{hardware.is_cpu ? DeviceKind::Cpu : DeviceKind::Cuda};  // which need not be there
  const RunSpec spec = resolve(loaded, ranks_of(placement), device);
  const auto with_micro_batches = [&](int64_t count) {
    RunSpec few = spec;
    few.batch.accumulation_steps = count;
    return simulate_whole(loaded.config, few, model, placement, hardware, batch);
  };
  const int64_t wanted = spec.batch.accumulation_steps;
  if (wanted <= kFew) return with_micro_batches(wanted);
  const Simulation more = with_micro_batches(kFew);
  return with_more_micro_batches(with_micro_batches(kFew - 1), more, wanted - kFew);
}

}  // namespace trainyard::train
