#include "autograd/recompute.h"

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <utility>

namespace trainyard::autograd {
namespace {

/// The outputs that a region keeps, in the order in which its first pass made them and its second asks for them.
class KeptOutputs {
 public:
  /// `outer`: of the region around it, whose own second pass this may be; it has its outputs ready, or wants them too.
  KeptOutputs(Retention retention, KeptOutputs* outer) : retention_(retention), outer_(outer) {}

  std::vector<Tensor> output(const std::function<std::vector<Tensor>()>& compute) {
    if (replays_) return next();
    std::vector<Tensor> made = outer_ ? outer_->output(compute) : compute();
    std::vector<Parked> parked;
    for (const Tensor& tensor : made) parked.emplace_back(tensor, retention_.offload);
    outputs_.push_back(std::move(parked));
    return made;
  }
  void replay() {
    replays_ = true;
    outer_ = nullptr;
  }

 private:
  std::vector<Tensor> next() {
    if (outputs_.empty())
      throw std::logic_error("checkpoint: its body asked for more outputs than in its first pass: the two differ");
    std::vector<Tensor> tensors;
    for (const Parked& parked : outputs_.front()) tensors.push_back(parked.fetch());
    outputs_.pop_front();
    return tensors;
  }

  Retention retention_;
  KeptOutputs* outer_;
  bool replays_ = false;
  std::deque<std::vector<Parked>> outputs_;
};

/// That of the region whose body runs on this thread; null where nothing is kept.
thread_local KeptOutputs* t_kept = nullptr;

class KeptScope {
 public:
  explicit KeptScope(KeptOutputs* kept) : outer_(std::exchange(t_kept, kept)) {}
  ~KeptScope() { t_kept = outer_; }
  KeptScope(const KeptScope&) = delete;
  KeptScope& operator=(const KeptScope&) = delete;

 private:
  KeptOutputs* outer_;
};

using Body = std::function<Variable(std::span<const Variable>)>;

/// A region between its two passes.
struct Region {
  Body body;
  std::vector<Parked> inputs;
  std::vector<std::shared_ptr<Gradient>> input_gradients;
  std::shared_ptr<KeptOutputs> kept;

  void go_back(Tensor gradient) {
    Tape again;
    std::vector<Variable> values;
    for (size_t i = 0; i < inputs.size(); ++i) values.emplace_back(inputs[i].fetch(), &again, input_gradients[i]);
    {
      const KeptScope scope(kept.get());
      body(values).gradient()->add(std::move(gradient));
    }
    again.backward();
  }
};

}  // namespace

Parked::Parked(Tensor tensor, bool offload)
    : tensor_(std::move(tensor)), device_(tensor_.device()), offloaded_(offload) {
  if (!offloaded_) return;
  if (device_.kind == DeviceKind::Cpu) {
    tensor_.storage()->set_kind(MemoryKind::Offloaded);
    return;
  }
  const MemoryKindScope scope(MemoryKind::Offloaded);
  Tensor host = Tensor::pinned(tensor_.shape(), tensor_.dtype());
  copy_async(tensor_, host);
  tensor_ = std::move(host);
}

Tensor Parked::fetch() const {
  if (!offloaded_) return tensor_;
  if (device_.kind == DeviceKind::Cpu) {
    tensor_.storage()->set_kind(MemoryKind::Activations);
    return tensor_;
  }
  Tensor there = Tensor::empty(tensor_.shape(), tensor_.dtype(), device_);
  copy_async(tensor_, there);
  return there;
}

std::vector<Tensor> kept(const std::function<std::vector<Tensor>()>& compute) {
  return t_kept ? t_kept->output(compute) : compute();
}

Variable checkpoint(std::vector<Variable> inputs, Body body, Retention retention) {
  Tape* const tape = inputs.at(0).tape();
  if (std::ranges::any_of(inputs, [tape](const Variable& input) { return input.tape() != tape; }))
    throw std::invalid_argument("checkpoint: its inputs are not on the same tape");
  if (!tape) return body(inputs);

  Region region{.body = std::move(body), .inputs = {}, .input_gradients = {}, .kept = nullptr};
  if (retention.keep == Retention::Keep::Products) region.kept = std::make_shared<KeptOutputs>(retention, t_kept);
  std::vector<Variable> values;
  for (const Variable& input : inputs) values.emplace_back(input.value());
  Tensor result;
  {
    const KeptScope scope(region.kept ? region.kept.get() : t_kept);
    result = region.body(values).value();
  }
  if (region.kept) region.kept->replay();
  for (const Variable& input : inputs) {
    region.inputs.emplace_back(input.value(), retention.offload);
    region.input_gradients.push_back(input.gradient());
  }
  const Variable y(std::move(result), tape);
  tape->record(y, [region = std::move(region)](Tensor gradient) mutable { region.go_back(std::move(gradient)); });
  return y;
}

Variable checkpoint(const Variable& x, std::function<Variable(const Variable&)> body, Retention retention) {
  return checkpoint(
      std::vector{x}, [body = std::move(body)](std::span<const Variable> inputs) { return body(inputs[0]); },
      retention);
}

}  // namespace trainyard::autograd
