#include "shard/engine.h"

#include <algorithm>
#include <unordered_set>

#include "ops/norm.h"

namespace trainyard::shard {

/// Ties one group to one module.
class Engine::Hooks final : public nn::ModuleHooks {
 public:
  Hooks(Engine& engine, Group& group, bool is_root) : engine_(engine), group_(group), is_root_(is_root) {}
  void before_forward(bool will_go_back) override { engine_.before_forward(group_, is_root_, will_go_back); }
  void after_forward(bool will_go_back) override { engine_.after_forward(group_, is_root_, will_go_back); }
  void before_backward() override { engine_.before_backward(group_); }
  void after_backward() override { engine_.after_backward(group_); }

 private:
  Engine& engine_;
  Group& group_;
  bool is_root_;
};

Engine::Engine(const Mesh& mesh, const Policy& policy) : mesh_(mesh), policy_(policy) {}
Engine::~Engine() = default;

void Engine::fully_shard(nn::Module& module) {
  std::unordered_set<const autograd::Parameter*> taken;
  for (const ParameterShard& shard : shards_) taken.insert(shard.parameter);
  std::vector<autograd::Parameter*> parameters;
  for (autograd::Parameter* const parameter : module.parameters())
    if (!taken.contains(parameter)) parameters.push_back(parameter);

  const bool is_root = module.name().empty();
  Group& group =
      *groups_.emplace_back(std::make_unique<Group>(is_root ? "root" : module.name(), parameters, mesh_, policy_));
  for (const Piece& piece : group.layout().pieces) {
    const int64_t count = piece.local.count * piece.row_elements;
    Shape shape = piece.parameter->shape();
    shape[0] = piece.local.count;
    shards_.push_back({piece.parameter, piece.local, group.shard().rows(piece.shard_offset, count).reshape(shape),
                       group.shard_gradient().rows(piece.shard_offset, count).reshape(shape)});
  }
  module.set_hooks(std::make_unique<Hooks>(*this, group, is_root));
}

void Engine::fill(const Source& source) {
  for (ParameterShard& shard : shards_) source(*shard.parameter, shard.rows, shard.value.values<float>());
}

void Engine::begin_micro_batch(bool last) {
  finish_backward();  // gradients still being reduced must not be added to
  reduces_ = last || policy_.sync_every_micro_batch;
}

void Engine::before_forward(Group& group, bool is_root, bool will_go_back) {
  if (std::ranges::find(forward_order_, &group) == forward_order_.end()) forward_order_.push_back(&group);
  use(group, forward_order_);
  // The head's gradient is computed with the loss, in forward.
  if (is_root && will_go_back) group.prepare_gradient();
}

void Engine::after_forward(Group& group, bool is_root, bool will_go_back) {
  if (std::ranges::find(backward_order_, &group) == backward_order_.end())
    backward_order_.insert(backward_order_.begin(), &group);
  // The root keeps its parameters: its backward comes first, so a reshard here would gather them again at once.
  const bool keeps = will_go_back && (is_root || policy_.reshard == Reshard::AfterBackward);
  if (!keeps) reshard(group);
}

void Engine::before_backward(Group& group) {
  use(group, backward_order_);
  group.prepare_gradient();
}

void Engine::after_backward(Group& group) {
  reshard(group);
  if (!reduces_) return;
  // One scatter at a time, and one sum over replicas behind it: more would only hold more memory.
  std::erase_if(reductions_, [](Group* older) { return older->advance_reduction(); });
  group.begin_reduction();
  tell(Event::Kind::Reduce, group);
  reductions_.push_back(&group);
}

void Engine::finish_backward() {
  while (!reductions_.empty()) std::erase_if(reductions_, [](Group* group) { return group->advance_reduction(); });
}

void Engine::release_gradients() {
  for (const auto& group : groups_) group->release_gradient();
}

double Engine::gradient_sum_of_squares() const {
  double sum = 0;
  for (const auto& group : groups_) sum += ops::sum_of_squares(group->shard_gradient());
  return sum;
}

/// Unshards `group` and starts on those that come next in `order`.
void Engine::use(Group& group, const std::vector<Group*>& order) {
  gather(group);
  auto next = std::ranges::find(order, &group);
  for (int ahead = 0; ahead < policy_.prefetch && next != order.end() && ++next != order.end(); ++ahead) gather(**next);
  group.finish_unshard();
  tell(Event::Kind::Use, group);
}

void Engine::gather(Group& group) {
  if (!group.is_sharded()) return;
  group.begin_unshard();
  tell(Event::Kind::Gather, group);
}

void Engine::reshard(Group& group) {
  group.reshard();
  tell(Event::Kind::Reshard, group);
}

void Engine::tell(Event::Kind kind, const Group& group) const {
  if (!observer_) return;
  size_t bytes = 0;
  for (const auto& each : groups_) bytes += each->gathered_bytes();
  observer_({kind, group.label(), bytes});
}

}  // namespace trainyard::shard
