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

/// The columns of the numbers that a rank gives for a step; the losses of its micro-batches come last.
enum Column : size_t { kSquares, kMemory, kDataWait, kCompute, kCommunication, kOwnTime, kFirstLoss };

}  // namespace

Trainer::Trainer(Parts parts, Plan plan, Callbacks callbacks)
    : parts_(parts), plan_(plan), callbacks_(std::move(callbacks)) {
  const Device device = parts_.engine.policy().device;
  reports_late_ = totals_device().kind == DeviceKind::Cuda && !parts_.scaler.is_on() && !dry_run();
  if (device.kind == DeviceKind::Cuda && !dry_run()) device_times_.emplace(device);
  if (plan_.graphs)
    graph_.emplace(parts_.engine, [this](const StepGraph::MicroBatches& micro_batches, float scale) {
      return compute(micro_batches, scale);
    });
}

Outcome Trainer::run(Progress& progress) {
  while (progress.step < plan_.total_steps) {
    const Input input = next_input();
    const Agreed agreed = agree(input, progress.step + 1);
    const std::vector<ops::Loss> losses = forward_backward(input.micro_batches, agreed.loss_weight);
    Step step = gather_totals(losses, progress.step + 1, agreed);

    step.result.lr = plan_.schedule.at(progress.step);
    update(step);
    progress = {step.result.step, progress.tokens + agreed.valid_tokens};
    if (callbacks_.validate) step.result.validated = callbacks_.validate(progress.step);

    const bool is_last = progress.step == plan_.total_steps;
    const bool saves = is_last || agreed.stop || callbacks_.is_checkpoint_due(progress.step);
    unreported_ = std::move(step);
    if (saves || !reports_late_) report();
    if (saves) save(progress);
    if (agreed.stop && !is_last) return Outcome::Stopped;
  }
  return Outcome::Completed;
}

Trainer::Input Trainer::next_input() {
  if (!graph_) parts_.engine.begin_step();  // a graph gathers all that it uses
  const metrics::TraceSpan span("data", "data");
  watch_.lap();
  Input input;
  input.error = input_error_of([&] {
    for (int64_t i = 0; i < plan_.accumulation_steps; ++i) input.micro_batches.push_back(parts_.loader.next());
  });
  own_.data_wait = watch_.lap().own;
  return input;
}

/// The gradient's scale is 1 / the weight of the global batch, known before the first forward. Where that is its valid
/// tokens, the gradient depends neither on the number of ranks nor on how the batch is split. Where losses are scaled,
/// it is so many times that.
Trainer::Agreed Trainer::agree(const Input& input, int64_t step) {
  double valid = 0, weight = 0;
  const bool counts = parts_.engine.mesh().counts_rows();
  for (const data::Batch& batch : input.micro_batches) {
    if (!counts) break;
    valid += static_cast<double>(batch.valid_tokens);
    weight += parts_.model.loss_weight(batch);
  }
  const GatheredScalars all(
      parts_.world,
      std::array{valid, weight, callbacks_.asked_to_stop() ? 1.0 : 0.0, input.error.empty() ? 0.0 : 1.0}, "agree");
  if (dry_run()) return {0, 1, false};  // its ranks agree on nothing
  const auto valid_tokens = static_cast<int64_t>(all.sum(0));
  if (all.max(3) > 0 || valid_tokens == 0) {
    report();
    throw_first(parts_.world, input.error);
    throw_first(parts_.world,
                fmt::format("step {}: every label is ignored, so there is nothing to learn from; look at the data", step));
  }
  return {valid_tokens, all.sum(1), all.max(2) > 0};
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
    if (parts_.adapters) parts_.adapters->begin_pass(inputs, plan_.dropout_seed);
    {
      const metrics::TraceSpan span("forward", "forward");
      losses.push_back(parts_.model.loss(inputs, {scale, &tape, plan_.dropout_seed}));
    }
    const metrics::TraceSpan span("backward", "backward");
    tape.backward();
    if (parts_.adapters) parts_.adapters->end_pass();
  }
  const metrics::TraceSpan span("wait for reductions", "reduce");
  parts_.engine.finish_backward();
  return losses;
}

/// Where the gradients are, on which the norm decides.
Device Trainer::totals_device() const {
  return parts_.engine.shards().front().value.device();
}

/// It notes the times of forward and backward, and of a device what it has told by now, its last update too.
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

Trainer::Step Trainer::gather_totals(const std::vector<ops::Loss>& losses, int64_t step, const Agreed& agreed) {
  report();  // the step before, while the device computes this one
  if (!reports_late_ && !dry_run()) synchronize(parts_.engine.policy().device);  // so that its time counts as this step's
  Step gathering = begin_totals(losses, step, agreed);
  if (!reports_late_) wait_for_totals(gathering);
  return gathering;
}

Trainer::Step Trainer::begin_totals(const std::vector<ops::Loss>& losses, int64_t step, const Agreed& agreed) {
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
  if (parts_.engine.mesh().of(shard::Dimension::Replicate).rank() == 0) put(squares.total, kSquares);
  for (size_t i = 0; i < losses.size() && parts_.engine.mesh().counts_rows(); ++i)
    put(losses[i].sums().rows(0, 1), kFirstLoss + i);
  return {.result = {.step = step,
                     .tokens = agreed.valid_tokens,
                     .times = {.checkpoint = std::exchange(own_.checkpoint, 0)},
                     .loss_scale = parts_.scaler.is_on() ? std::optional(parts_.scaler.scale()) : std::nullopt},
          .loss_weight = agreed.loss_weight,
          .loss_scale = parts_.scaler.scale(),
          .gradient_squares = squares.of_each,
          .totals = GatheredScalars(parts_.world, own, "totals")};
}

/// Throws where the step is not finite.
void Trainer::wait_for_totals(Step& step) {
  if (std::exchange(step.is_read, true)) return;
  const GatheredScalars& totals = step.totals;
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

void Trainer::report() {
  if (!unreported_) return;
  Step step = *std::exchange(unreported_, std::nullopt);
  wait_for_totals(step);
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
