#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "fsdp/state.h"
#include "ops/scale.h"

namespace trainyard::fsdp {
namespace {

void require_gradients(const ModelState& state, const char* who) {
  state.require_complete(who);
  const auto has = [](const auto& group) { return group->has_gradient() || !group->trains(); };
  if (!std::ranges::all_of(state.engine->groups(), has))
    throw std::logic_error(std::string(who) + ": there are no gradients; call backward() first");
}

config::Optimizer settings_of(const AdamWOptions& options) {
  config::Optimizer settings;
  settings.lr = options.lr;
  settings.betas = {options.beta1, options.beta2};
  settings.eps = options.eps;
  settings.weight_decay = options.weight_decay;
  return settings;
}

std::shared_ptr<OptimizerState> state_of(const std::shared_ptr<ModelState>& model, const AdamWOptions& options) {
  model->require_complete("AdamW");
  return std::make_shared<OptimizerState>(
      OptimizerState{model, optim::AdamW(*model->engine, settings_of(options)), options.lr});
}

}  // namespace

AdamW::AdamW(const Model& model, const AdamWOptions& options) : state_(state_of(model.state(), options)) {}

void AdamW::step() {
  require_gradients(*state_->model, "AdamW::step");
  state_->model->reshard_all();
  state_->adamw.step(state_->lr, {});
}

void AdamW::zero_grad() {
  state_->model->engine->release_gradients();
}

void AdamW::set_lr(double lr) {
  state_->lr = lr;
}

std::int64_t AdamW::steps_done() const {
  return state_->adamw.steps_done();
}

double clip_grad_norm(const Model& model, double max_norm) {
  const ModelState& state = *model.state();
  require_gradients(state, "clip_grad_norm");
  Tensor squares = state.engine->gradient_squares().total;
  state.mesh->of(shard::Dimension::Shard).all_reduce(squares).wait();
  const double norm = std::sqrt(squares.values<double>()[0]);
  const double factor = max_norm / (norm + 1e-6);
  if (factor >= 1 || !std::isfinite(norm)) return norm;
  for (const auto& group : state.engine->groups())
    if (group->trains()) ops::scale(group->shard_gradient(), static_cast<float>(factor));
  return norm;
}

}  // namespace trainyard::fsdp
