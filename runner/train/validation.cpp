#include "train/validation.h"

#include <algorithm>
#include <array>

#include "assemble/exchange.h"
#include "base/error.h"
#include "metrics/trace.h"

namespace trainyard::train {
namespace {

/// Batches until every row has come once.
int64_t batches_of_a_pass(const data::Loader& loader) {
  return (loader.sequences_per_epoch() + loader.sequences_per_step() - 1) / loader.sequences_per_step();
}

}  // namespace

Validation::Validation(std::unique_ptr<data::Loader> loader, int64_t steps)
    : loader_(std::move(loader)), begin_(loader_->state()) {
  const int64_t all = batches_of_a_pass(*loader_);
  steps_ = steps == 0 ? all : std::min(steps, all);
}

Validated Validation::run(comm::Communicator& world, models::Model& model, shard::Engine& engine) {
  const metrics::TraceSpan span("validate", "validation");
  loader_->load_state(begin_);
  double loss_sum = 0, weight = 0, valid = 0, correct = 0;
  for (int64_t step = 0; step < steps_; ++step) {
    const data::Batch batch = loader_->next();
    engine.begin_micro_batch(true);
    const ops::LossSums sums = model.loss(batch, {}).read();
    if (!engine.mesh().counts_rows()) continue;
    loss_sum += sums.loss_sum, correct += static_cast<double>(sums.correct);
    weight += model.loss_weight(batch), valid += static_cast<double>(batch.valid_tokens);
  }
  const GatheredScalars answers(world, std::array{loss_sum, weight, valid, correct}, "validation");
  if (answers.sum(2) == 0) throw InputError("the validation data has no position with a target, so there is no loss");
  const bool classifies = models::learns_from(model.config()) == models::LearnsFrom::Images;
  return {answers.sum(0) / answers.sum(1), classifies ? std::optional(answers.sum(3) / answers.sum(2)) : std::nullopt};
}

}  // namespace trainyard::train
