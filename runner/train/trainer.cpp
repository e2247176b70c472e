#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "metrics/trace.h"
#include "ops/determinism.h"
#include "ops/norm.h"
#include "tensor/device_memory.h"
#include "tensor/dry_run.h"
#include "tensor/memory.h"
#include "train/finite.h"

namespace trainyard::train {
namespace {

/// Of the numbers that a rank gives for a step; the losses of its micro-batches come last.
enum Column : size_t { kSquares, kMemory, kDataWait, kCompute, kCommunication, kOwnTime, kFirstLoss };

}  // namespace

Trainer::Trainer(Parts parts, Plan plan, Callbacks callbacks)
    : parts_(parts), plan_(plan), callbacks_(std::move(callbacks)) {
  const Device device = parts_.engine.policy().device;
  if (device.kind == DeviceKind::Cuda && !dry_run()) device_times_.emplace(device);
  if (plan_.graphs)
    graph_.emplace(parts_.engine, [this](const StepGraph::MicroBatches& micro_batches, float scale) {
      return compute(micro_batches, scale);
    });
}

Outcome Trainer::run(Progress& progress) {
  const bool waits = totals_device().kind == DeviceKind::Cpu || parts_.scaler.is_on() || dry_run();
  while (progress.step < plan_.total_steps) {
    if (!graph_) parts_.engine.begin_step();  // a graph gathers all that it uses
    std::vector<data::Batch> micro_batches;
    const std::string error = input_error_of([&] { micro_batches = next_micro_batches(); });
    const Agreed agreed = agree(micro_batches, error);
    if (agreed.valid_tokens == 0 && !dry_run()) {  // whose ranks agree on nothing
      tell();
      throw_first(parts_.world,
                  fmt::format("step {}: every label is ignored, so there is nothing to learn from; look at the data",
                              progress.step + 1));
    }
    const std::vector<ops::Loss> losses = forward_backward(micro_batches, agreed.loss_weight);
    tell();  // the step before; the device has this one to do meanwhile
    if (waits && !dry_run()) synchronize(parts_.engine.policy().device);  // so that its time counts as this step's
    Step step = total(losses, progress.step + 1, agreed);
    if (waits) read(step);

    step.result.lr = plan_.schedule.at(progress.step);
    update(step);
    progress = {step.result.step, progress.tokens + agreed.valid_tokens};
    if (callbacks_.validate) step.result.validated = callbacks_.validate(progress.step);
    untold_ = std::move(step);

    const bool is_last = progress.step == plan_.total_steps;
    const bool saves = is_last || agreed.stop || callbacks_.is_checkpoint_due(progress.step);
    if (waits || saves) tell();
    if (saves) save(progress);
    if (agreed.stop && !is_last) return Outcome::Stopped;
  }
  return Outcome::Completed;
}

std::vector<data::Batch> Trainer::next_micro_batches() {
  const metrics::TraceSpan span("data", "data");
  watch_.lap();
  std::vector<data::Batch> batches;
  for (int64_t i = 0; i < plan_.accumulation_steps; ++i) batches.push_back(parts_.loader.next());
  own_.data_wait = watch_.lap().own;
  return batches;
}

/// The gradient's scale is 1 / the weight of the global batch, known before the first forward. Where that is its valid
/// tokens, the gradient depends neither on the number of ranks nor on how the batch is split. Where losses are scaled,
/// it is so many times that.
Trainer::Agreed Trainer::agree(const std::vector<data::Batch>& micro_batches, const std::string& error) {
  double valid = 0, weight = 0;
  for (const data::Batch& batch : micro_batches) {
    valid += static_cast<double>(batch.valid_tokens);
    weight += parts_.model.loss_weight(batch);
  }
  const Answers answers(parts_.world,
                        std::array{valid, weight, callbacks_.asked_to_stop() ? 1.0 : 0.0, error.empty() ? 0.0 : 1.0},
                        "agree");
  if (answers.max(3) > 0) {
    tell();
    throw_first(parts_.world, error);
  }
  // A dry run's ranks agree on nothing.
  return {static_cast<int64_t>(answers.sum(0)), dry_run() ? 1 : answers.sum(1), answers.max(2) > 0};
}

std::vector<ops::Loss> Trainer::forward_backward(const std::vector<data::Batch>& micro_batches, double loss_weight) {
  const auto scale = static_cast<float>(parts_.scaler.scale() / loss_weight);
  StepGraph::MicroBatches inputs;
  for (const data::Batch& batch : micro_batches) inputs.push_back(parts_.model.inputs(batch));
  if (device_times_) device_times_->begin_lap();
  auto losses = graph_ ? graph_->run(std::move(inputs), scale) : compute(inputs, scale);
  if (device_times_) device_times_->end_lap(&StepTimes::compute, &StepTimes::communication);
  return losses;
}

std::vector<ops::Loss> Trainer::compute(const StepGraph::MicroBatches& micro_batches, float scale) {
  const MemoryKindScope activations(MemoryKind::Activations);
  const ops::DeterminismScope determinism(plan_.deterministic);
  std::vector<ops::Loss> losses;
  for (const models::Inputs& inputs : micro_batches) {
    nn::Tape tape;
    parts_.engine.begin_micro_batch(&inputs == &micro_batches.back());
    {
      const metrics::TraceSpan span("forward", "forward");
      losses.push_back(parts_.model.loss(inputs, {scale, &tape, plan_.dropout_seed}));
    }
    const metrics::TraceSpan span("backward", "backward");
    tape.backward();
  }
  const metrics::TraceSpan span("wait for reductions", "reduce");
  parts_.engine.finish_backward();
  return losses;
}

/// Where the gradients are, on which the norm decides.
Device Trainer::totals_device() const {
  return parts_.engine.shards().front().value.device();
}

/// Of forward and backward; of a device what it has told by now, of its last update too.
void Trainer::note_times() {
  const Stopwatch::Lap lap = watch_.lap();
  own_.compute = lap.own;
  own_.communication = lap.waited;
  if (!device_times_) return;
  const StepTimes& latest = device_times_->latest();
  own_.compute = latest.compute;
  own_.communication = latest.communication;
  own_.optimizer = latest.optimizer;
}

Trainer::Step Trainer::total(const std::vector<ops::Loss>& losses, int64_t step, const Agreed& agreed) {
  const ops::SquareSums squares = parts_.engine.gradient_squares();
  note_times();

  std::vector<double> host(kFirstLoss + losses.size());
  host[kMemory] = static_cast<double>(process_bytes(parts_.engine.policy().device));
  host[kDataWait] = own_.data_wait;
  host[kCompute] = own_.compute;
  host[kCommunication] = own_.communication;
  host[kOwnTime] = own_.data_wait + own_.compute + own_.optimizer;
  const Tensor own = on_device(Tensor::from<double>(host, {static_cast<int64_t>(host.size())}), totals_device());
  const auto put = [&](const Tensor& value, size_t column) {
    Tensor place = own.rows(static_cast<int64_t>(column), 1);
    copy(value, place);
  };
  // Replicas of a shard hold the same gradient: only one of them counts.
  if (parts_.engine.mesh().replicate().rank() == 0) put(squares.total, kSquares);
  for (size_t i = 0; i < losses.size(); ++i) put(losses[i].sums().rows(0, 1), kFirstLoss + i);
  return {.result = {.step = step,
                     .tokens = agreed.valid_tokens,
                     .times = {.checkpoint = std::exchange(own_.checkpoint, 0)},
                     .loss_scale = parts_.scaler.is_on() ? std::optional(parts_.scaler.scale()) : std::nullopt},
          .loss_weight = agreed.loss_weight,
          .loss_scale = parts_.scaler.scale(),
          .gradient_squares = squares.of_each,
          .totals = Answers(parts_.world, own, "totals")};
}

/// Waits for the step, and throws where it is not finite.
void Trainer::read(Step& step) {
  if (std::exchange(step.is_read, true)) return;
  const Answers& totals = step.totals;
  StepResult& result = step.result;
  double loss = 0;
  for (int rank = 0; rank < totals.ranks(); ++rank)
    for (size_t column = kFirstLoss; column < totals.count(); ++column) loss += totals.at(rank, column);
  result.loss = loss / step.loss_weight;
  result.grad_norm = std::sqrt(totals.sum(kSquares)) / step.loss_scale;
  result.memory_bytes = static_cast<uint64_t>(totals.max(kMemory));
  result.times.data_wait = totals.max(kDataWait);
  result.times.compute = totals.max(kCompute);
  result.times.communication = totals.min(kCommunication);
  result.slow = slow_rank(totals.column(kOwnTime));
  result.skipped = has_overflowed(result);
  if (!result.skipped) require_finite(step);
}

/// The last step, unless that was done.
void Trainer::tell() {
  if (!untold_) return;
  Step step = *std::exchange(untold_, std::nullopt);
  read(step);
  callbacks_.on_step(step.result);
}

/// What is not finite changes nothing, also where nobody has looked yet.
void Trainer::update(Step& step) {
  const metrics::TraceSpan span("optimizer", "optimizer");
  watch_.lap();
  if (device_times_) device_times_->begin_lap();
  if (callbacks_.before_update) callbacks_.before_update();
  if (!step.result.skipped)
    parts_.optimizer.step(step.result.lr, ops::clip_factor(step.totals.all(), plan_.clip_grad_norm, step.loss_scale));
  parts_.scaler.update(step.result.skipped);
  step.result.next_loss_scale = parts_.scaler.scale();
  parts_.engine.release_gradients();
  if (device_times_)
    device_times_->end_lap(&StepTimes::optimizer);
  else
    own_.optimizer = watch_.lap().own;
  step.result.times.optimizer = own_.optimizer;
}

void Trainer::save(const Progress& progress) {
  watch_.lap();
  callbacks_.save(progress);
  const Stopwatch::Lap lap = watch_.lap();
  own_.checkpoint = lap.own + lap.waited;
}

/// All ranks see the same norm, so all skip or none. A loss that is not finite came about before any scaling.
bool Trainer::has_overflowed(const StepResult& result) const {
  return std::isfinite(result.loss) && !std::isfinite(result.grad_norm) && parts_.scaler.can_back_off();
}

void Trainer::require_finite(const Step& step) {
  const StepResult& result = step.result;
  if (std::isfinite(result.loss) && std::isfinite(result.grad_norm)) return;
  const bool is_overflow = std::isfinite(result.loss) && parts_.scaler.is_constant();
  throw_not_finite(parts_.world, parts_.engine, {result.step, result.loss, result.grad_norm, step.gradient_squares},
                   is_overflow ? "a lower training.loss_scale, or auto, may help"
                               : "a lower optimizer.lr or a longer warm-up may help");
}

}  // namespace trainyard::train
