#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "metrics/trace.h"
#include "optim/clip.h"
#include "tensor/device_memory.h"
#include "tensor/dry_run.h"
#include "tensor/memory.h"
#include "train/exchange.h"
#include "train/finite.h"

namespace trainyard::train {

Outcome Trainer::run(Progress& progress) {
  while (progress.step < plan_.total_steps) {
    parts_.engine.begin_step();
    std::vector<data::Batch> micro_batches;
    const std::string error = input_error_of([&] { micro_batches = next_micro_batches(); });
    const Agreed agreed = agree(micro_batches, error);
    if (agreed.valid_tokens == 0 && !dry_run())  // whose ranks agree on nothing
      throw_first(parts_.world,
                  fmt::format("step {}: every label is ignored, so there is nothing to learn from; look at the data",
                              progress.step + 1));
    const Sums own = forward_backward(micro_batches, agreed.loss_weight);
    StepResult result = total(own, progress.step + 1, agreed);
    result.skipped = has_overflowed(result);
    if (!result.skipped) require_finite(result);

    result.lr = plan_.schedule.at(progress.step);
    update(result);
    progress = {result.step, progress.tokens + agreed.valid_tokens};
    if (callbacks_.validate) result.validated = callbacks_.validate(progress.step);
    callbacks_.on_step(result);

    const bool is_last = progress.step == plan_.total_steps;
    if (is_last || agreed.stop || callbacks_.is_checkpoint_due(progress.step)) save(progress);
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
  if (answers.max(3) > 0) throw_first(parts_.world, error);
  // A dry run's ranks agree on nothing.
  return {static_cast<int64_t>(answers.sum(0)), dry_run() ? 1 : answers.sum(1), answers.max(2) > 0};
}

Trainer::Sums Trainer::forward_backward(const std::vector<data::Batch>& micro_batches, double loss_weight) {
  const auto scale = static_cast<float>(parts_.scaler.scale() / loss_weight);
  const MemoryKindScope activations(MemoryKind::Activations);
  std::vector<ops::Loss> losses;
  for (const data::Batch& batch : micro_batches) {
    nn::Tape tape;
    parts_.engine.begin_micro_batch(&batch == &micro_batches.back());
    {
      const metrics::TraceSpan span("forward", "forward");
      losses.push_back(parts_.model.loss(batch, {scale, &tape, plan_.dropout_seed}));
    }
    const metrics::TraceSpan span("backward", "backward");
    tape.backward();
  }
  const metrics::TraceSpan span("wait for reductions", "reduce");
  parts_.engine.finish_backward();
  // Replicas of a shard hold the same gradient: only one of them counts.
  Sums sums{.squares = parts_.engine.mesh().replicate().rank() == 0 ? parts_.engine.gradient_sum_of_squares() : 0};
  for (const ops::Loss& loss : losses) sums.loss += loss.read().loss_sum;
  const Stopwatch::Lap lap = watch_.lap();
  own_.compute = lap.own;
  own_.communication = lap.waited;
  return sums;
}

StepResult Trainer::total(const Sums& sums, int64_t step, const Agreed& agreed) {
  const double own = own_.data_wait + own_.compute + own_.optimizer;
  const Answers answers(
      parts_.world,
      std::array{sums.loss, sums.squares, static_cast<double>(process_bytes(parts_.engine.policy().device)),
                 own_.data_wait, own_.compute, own_.communication, own},
      "totals");
  return {.step = step,
          .loss = answers.sum(0) / agreed.loss_weight,
          .grad_norm = std::sqrt(answers.sum(1)) / parts_.scaler.scale(),
          .tokens = agreed.valid_tokens,
          .memory_bytes = static_cast<uint64_t>(answers.max(2)),
          .times = {.data_wait = answers.max(3),
                    .compute = answers.max(4),
                    .communication = answers.min(5),
                    .checkpoint = std::exchange(own_.checkpoint, 0)},
          .slow = slow_rank(answers.column(6)),
          .loss_scale = parts_.scaler.is_on() ? std::optional(parts_.scaler.scale()) : std::nullopt};
}

void Trainer::update(StepResult& result) {
  const metrics::TraceSpan span("optimizer", "optimizer");
  watch_.lap();
  if (!result.skipped) {
    const double clip = optim::clip_factor(result.grad_norm, plan_.clip_grad_norm);
    parts_.optimizer.step(result.lr, static_cast<float>(clip / parts_.scaler.scale()));
  }
  parts_.scaler.update(result.skipped);
  result.next_loss_scale = parts_.scaler.scale();
  parts_.engine.release_gradients();
  result.times.optimizer = own_.optimizer = watch_.lap().own;
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

void Trainer::require_finite(const StepResult& result) {
  if (std::isfinite(result.loss) && std::isfinite(result.grad_norm)) return;
  const bool is_overflow = std::isfinite(result.loss) && parts_.scaler.is_constant();
  throw_not_finite(parts_.world, parts_.engine, result.step, result.loss, result.grad_norm,
                   is_overflow ? "a lower training.loss_scale, or auto, may help"
                               : "a lower optimizer.lr or a longer warm-up may help");
}

}  // namespace trainyard::train
