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
    std::vector<Parked>& parked = outputs_.emplace_back();
    for (const Tensor& tensor : made) parked.emplace_back(tensor, retention_.offload);
    return made;
  }
  void replay() {
    replays_ = true;
    outer_ = nullptr;
  }
  void prefetch() {
    for (std::vector<Parked>& some : outputs_)
      for (Parked& parked : some) parked.prefetch();
  }

 private:
  std::vector<Tensor> next() {
    if (outputs_.empty())
      throw std::logic_error("checkpoint: its body asked for more outputs than in its first pass: the two differ");
    std::vector<Tensor> tensors;
    for (Parked& parked : outputs_.front()) tensors.push_back(parked.fetch());
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
  std::shared_ptr<KeptOutputs> kept;  // null: nothing
  std::weak_ptr<Region> before;       // the one that comes next on the way back

  void prefetch() {
    for (Parked& input : inputs) input.prefetch();
    if (kept) kept->prefetch();
  }

  void go_back(Tensor gradient) {
    prefetch();
    if (const auto next = before.lock()) next->prefetch();  // behind this one's compute
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

/// The latest of this thread.
thread_local std::weak_ptr<Region> t_latest;

/// Tensors on their way to host memory, which have their places on the device until they are there. So that the device
/// does not fill up where compute is faster than the bus, it waits for the first of more than a few.
void add_leaving(const std::shared_ptr<SideWork>& work) {
  constexpr size_t kMost = 2;
  thread_local std::deque<std::weak_ptr<SideWork>> leaving;
  leaving.push_back(work);
  if (leaving.size() <= kMost) return;
  if (const auto first = leaving.front().lock()) first->wait();
  leaving.pop_front();
}

}  // namespace

Parked::Parked(Tensor tensor, bool offload) : tensor_(std::move(tensor)) {
  if (!offload) return;
  const MemoryKindScope scope(MemoryKind::Offloaded);
  const Device device = tensor_.device();
  if (device.kind == DeviceKind::Cpu) {
    tensor_.storage()->set_kind(MemoryKind::Offloaded);
    return;
  }
  host_ = Tensor::pinned(tensor_.shape(), tensor_.dtype(), device);
  leaving_ = std::make_shared<SideWork>(SideWork::Direction::ToHost, device, std::vector{tensor_, host_},
                                        [this] { copy_async(tensor_, host_); });
  add_leaving(leaving_);
  device_ = device, tensor_ = {};
}

void Parked::prefetch() {
  if (!host_.defined() || tensor_.defined()) return;
  leaving_->wait();
  tensor_ = Tensor::empty(host_.shape(), host_.dtype(), device_);
  returning_ =
      SideWork(SideWork::Direction::ToDevice, device_, {host_, tensor_}, [this] { copy_async(host_, tensor_); });
}

Tensor Parked::fetch() {
  prefetch();
  returning_.wait();
  host_ = {};
  if (tensor_.storage()->kind() == MemoryKind::Offloaded) tensor_.storage()->set_kind(MemoryKind::Activations);
  return std::exchange(tensor_, {});
}

std::vector<Tensor> kept(const std::function<std::vector<Tensor>()>& compute) {
  return t_kept ? t_kept->output(compute) : compute();
}

Variable checkpoint(std::vector<Variable> inputs, Body body, Retention retention) {
  Tape* const tape = inputs.at(0).tape();
  if (std::ranges::any_of(inputs, [tape](const Variable& input) { return input.tape() != tape; }))
    throw std::invalid_argument("checkpoint: its inputs are not on the same tape");
  if (!tape) return body(inputs);

  const auto region = std::make_shared<Region>();
  region->body = std::move(body);
  region->before = std::exchange(t_latest, region);
  if (retention.keep == Retention::Keep::Products) region->kept = std::make_shared<KeptOutputs>(retention, t_kept);
  std::vector<Variable> values;
  for (const Variable& input : inputs) values.emplace_back(input.value());
  Tensor result;
  {
    const KeptScope scope(region->kept ? region->kept.get() : t_kept);
    result = region->body(values).value();
  }
  if (region->kept) region->kept->replay();
  for (const Variable& input : inputs) {
    region->inputs.emplace_back(input.value(), retention.offload);
    region->input_gradients.push_back(input.gradient());
  }
  const Variable y(std::move(result), tape);
  tape->record(y, [region](Tensor gradient) { region->go_back(std::move(gradient)); });
  return y;
}

Variable checkpoint(const Variable& x, std::function<Variable(const Variable&)> body, Retention retention) {
  return checkpoint(
      std::vector{x}, [body = std::move(body)](std::span<const Variable> inputs) { return body(inputs[0]); },
      retention);
}

}  // namespace trainyard::autograd
