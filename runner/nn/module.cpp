#include "nn/module.h"

#include <algorithm>

namespace trainyard::nn {

std::vector<Parameter*> Module::parameters() const {
  std::vector<Parameter*> all = own_parameters();
  for (const Module* const child : children_) {
    const auto below = child->parameters();
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

std::vector<Parameter*> Module::own_parameters() const {
  std::vector<Parameter*> own;
  for (const auto& parameter : parameters_) own.push_back(parameter.get());
  return own;
}

bool Module::holds_shared() const {
  return shared_ || std::ranges::any_of(children_, [](const Module* child) { return child->holds_shared(); });
}

Parameter& Module::add_parameter(const std::string& suffix, Shape shape, Init init) {
  return *parameters_.emplace_back(std::make_unique<Parameter>(name_of(suffix), std::move(shape), init));
}

Variable Module::run(std::vector<Variable> inputs, std::function<Variable(std::span<const Variable>)> body) const {
  Variable y;
  run_root(inputs.at(0).tape(), [&] { y = recomputed(std::move(inputs), std::move(body)); });
  return y;
}

Variable Module::run(const Variable& x, std::function<Variable(const Variable&)> body) const {
  return run(std::vector{x}, [body = std::move(body)](std::span<const Variable> inputs) { return body(inputs[0]); });
}

Variable Module::recomputed(std::vector<Variable> inputs,
                            std::function<Variable(std::span<const Variable>)> body) const {
  if (hooks_)
    for (Variable& input : inputs) input = hooks_->input(input);
  body = with_functions(std::move(body));
  return given(recompute_ ? autograd::checkpoint(std::move(inputs), std::move(body), retention_) : body(inputs));
}

Module::Body Module::with_functions(Body body) const {
  if (!functions_.input && !functions_.output) return body;
  return [this, body = std::move(body)](std::span<const Variable> given_inputs) {
    std::vector<Variable> inputs(given_inputs.begin(), given_inputs.end());
    if (functions_.input) inputs.front() = functions_.input(inputs.front());
    return replaced(body(inputs));
  };
}

Variable Module::run(Tape* tape, const std::function<Variable()>& body) const {
  Variable y;
  run_root(tape, [&] { y = given(replaced(body())); });
  return y;
}

void Module::run_root(Tape* tape, const std::function<void()>& body) const {
  if (!hooks_) return body();
  hooks_->before_forward(tape != nullptr);
  if (tape) tape->record([hooks = hooks_.get()] { hooks->after_backward(); });
  body();
  if (tape) tape->record([hooks = hooks_.get()] { hooks->before_backward(); });
  hooks_->after_forward(tape != nullptr);
}

void place_whole(Module& module, DType dtype, Device device) {
  for (Parameter* const parameter : module.parameters())
    parameter->place(Tensor::zeros(parameter->shape(), dtype, device),
                     Tensor::zeros(parameter->shape(), dtype, device));
}

}  // namespace trainyard::nn
