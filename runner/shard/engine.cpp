#include "shard/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "autograd/functions.h"
#include "shard/filling.h"

namespace trainyard::shard {

/// Where a module stands among those of its group.
struct Engine::Place {
  bool is_first, is_last;
  Reshard reshard;
};

/// Ties one group to one of its modules.
class Engine::Hooks final : public nn::ModuleHooks {
 public:
  Hooks(Engine& engine, Group& group, Place place) : engine_(engine), group_(group), place_(place) {}
  void before_forward(bool) override { engine_.before_forward(group_); }
  void after_forward(bool will_go_back) override {
    if (place_.is_last) engine_.after_forward(group_, place_.reshard, will_go_back);
  }
  void before_backward() override { engine_.before_backward(group_); }
  void after_backward() override {
    if (place_.is_first) engine_.after_backward(group_);
  }
  [[nodiscard]] nn::Variable input(const nn::Variable& x) override {
    const MixedPrecision& precision = group_.precision();
    return precision.cast_forward_inputs ? autograd::cast(x, precision.param_dtype) : x;
  }
  [[nodiscard]] nn::Variable output(const nn::Variable& y) override {
    return autograd::cast(y, group_.precision().output_dtype.value_or(y.value().dtype()));
  }

 private:
  Engine& engine_;
  Group& group_;
  Place place_;
};

namespace {

/// "model.layers.3", "root", of several "model.layers.2..3", and of two stacks "encoder.block.5..decoder.block.0".
std::string label_of(std::span<nn::Module* const> modules) {
  const std::string &first = modules.front()->name(), &last = modules.back()->name();
  if (first.empty()) return "root";
  if (modules.size() == 1) return first;
  const size_t number = last.rfind('.') + 1;
  return fmt::format("{}..{}", first, first.starts_with(last.substr(0, number)) ? last.substr(number) : last);
}

/// This rank's rows of one parameter's gradient in a padded shard.
Tensor rows_of(const Piece& piece, const Tensor& shard) {
  Shape shape = piece.parameter->shape();
  shape[0] = piece.local.count;
  return shard.rows(piece.shard_offset, piece.local.count * piece.row_elements).reshape(shape);
}

/// Of this rank's rows those that count here.
Rows counted_rows(const Piece& piece) {
  const int64_t shared = std::clamp<int64_t>(piece.parameter->part().shared - piece.local.begin, 0, piece.local.count);
  return {shared, piece.local.count - shared};
}

}  // namespace

Engine::Engine(const Mesh& mesh, const Policy& policy) : mesh_(mesh), policy_(policy) {}
Engine::~Engine() = default;

void Engine::fully_shard(nn::Module& module, const GroupPolicy& own) {
  nn::Module* const one[] = {&module};
  fully_shard(one, own);
}

void Engine::fully_shard(std::span<nn::Module* const> modules, const GroupPolicy& own) {
  std::unordered_set<const autograd::Parameter*> taken;
  for (const ParameterShard& shard : shards_) taken.insert(shard.parameter);
  std::vector<autograd::Parameter*> parameters;
  for (const nn::Module* const module : modules)
    for (autograd::Parameter* const parameter : module->parameters())
      if (!taken.contains(parameter)) parameters.push_back(parameter);
  if (parameters.empty()) return;  // all are in groups further in

  Policy policy = policy_;
  policy.precision = own.precision.value_or(policy.precision);
  Group& group = *groups_.emplace_back(std::make_unique<Group>(label_of(modules), parameters, mesh_, policy));
  auto gradient = group.gradient_layout().pieces.begin();
  const std::vector<Tensor> values = group.shard_rows();
  auto value = values.begin();
  for (const Piece& piece : group.layout().pieces) {
    ParameterShard shard{piece.parameter, piece.local, counted_rows(piece), *value++, {}};
    if (!piece.parameter->is_frozen()) shard.gradient = rows_of(*gradient++, group.shard_gradient());
    shards_.push_back(std::move(shard));
  }
  for (nn::Module* const module : modules) {
    const bool is_root = module->name().empty();
    const Place place{module == modules.front(), module == modules.back(),
                      own.reshard.value_or(is_root ? Reshard::AfterBackward : policy_.reshard)};
    if (is_root) root_ = &group;
    group_of_[module] = &group;
    module->set_hooks(std::make_unique<Hooks>(*this, group, place));
  }
}

Group* Engine::group_of(const nn::Module& module) const {
  const auto found = group_of_.find(&module);
  return found == group_of_.end() ? nullptr : found->second;
}

namespace {

/// Calls `take` with some of `rows` of a whole parameter at a time and host memory [rows, elements of a row] for them:
/// 64 MiB, or one row, is what a rank holds beside its shards.
template <typename Take>
void for_blocks(const autograd::Parameter& parameter, Rows rows, const Take& take) {
  constexpr int64_t kBlockElements = int64_t{1} << 24;
  const Shape& shape = parameter.whole_shape();
  const int64_t row_elements = std::max<int64_t>(count_of(shape) / std::max<int64_t>(shape[0], 1), 1);
  const int64_t most = std::max<int64_t>(kBlockElements / row_elements, 1);
  for (int64_t begin = rows.begin; begin < rows.begin + rows.count; begin += most) {
    const int64_t count = std::min(most, rows.begin + rows.count - begin);
    take(Rows{begin, count}, Tensor::empty({count, row_elements}, DType::Float32));
  }
}

}  // namespace

void Engine::fill(const Source& source) {
  scales_are_current_ = false;
  for (ParameterShard& shard : shards_) {
    ShardFilling filling(shard);
    if (filling.is_in_place()) {
      source(*shard.parameter, filling.wanted(), shard.value.values<float>());
      continue;
    }
    for_blocks(*shard.parameter, filling.wanted(), [&](Rows rows, Tensor block) {
      source(*shard.parameter, rows, block.values<float>());
      filling.take(rows, block);
    });
    filling.finish(mesh_.of(Dimension::Shard), policy_.device);
  }
}

void Engine::fill_from_rank_0(const Source& source) {
  scales_are_current_ = false;
  for (ParameterShard& shard : shards_) {
    ShardFilling filling(shard);
    for_blocks(*shard.parameter, {0, shard.parameter->whole_shape()[0]}, [&](Rows rows, Tensor block) {
      if (mesh_.world().rank() == 0) source(*shard.parameter, rows, block.values<float>());
      mesh_.world().broadcast(block, 0, shard.parameter->name()).wait();
      filling.take(rows, block);
    });
    filling.finish(mesh_.of(Dimension::Shard), policy_.device);
  }
}

void Engine::begin_step() {
  if (!policy_.prefetch.early) return;
  Group* const first = forward_order_.empty() ? root_ : forward_order_.front();
  if (!first) return;
  gather(*first);
  prefetch_forward(*first);
}

void Engine::begin_micro_batch(bool last) {
  finish_backward();  // gradients still being reduced must not be added to
  reduces_ = last || policy_.sync_every_micro_batch;
}

void Engine::before_forward(Group& group) {
  if (std::ranges::find(forward_order_, &group) == forward_order_.end()) forward_order_.push_back(&group);
  gather(group);
  // A region that backward computes again is between groups that go the other way: it asks for nothing ahead.
  if (!goes_back_) prefetch_forward(group);
  use(group);
}

void Engine::after_forward(Group& group, Reshard when, bool will_go_back) {
  if (std::ranges::find(backward_order_, &group) == backward_order_.end())
    backward_order_.insert(backward_order_.begin(), &group);
  if (will_go_back && when == Reshard::AfterBackward) return;
  if (!will_go_back || !mesh_.post_forward()) return reshard(group);
  group.reshard_to_post_forward();
  tell(Event::Kind::Reshard, group);
}

void Engine::before_backward(Group& group) {
  goes_back_ = true;
  latest_ = &group;
  gather(group);
  if (policy_.prefetch.when == BackwardPrefetch::Pre) prefetch_backward(group);
  use(group);
}

void Engine::after_backward(Group& group) {
  reshard(group);
  // What comes next follows the latest to begin: a group around others ends after them, the root last of all.
  if (policy_.prefetch.when == BackwardPrefetch::Post) prefetch_backward(*latest_);
  if (reduces_ && group.trains()) reduce(group);
}

void Engine::finish_backward() {
  while (!reductions_.empty()) advance_reductions();
  await_offloaded_gradients();
  // What was gathered ahead and then not used would be of the weights before the update.
  if (goes_back_)
    for (const auto& group : groups_)
      if (!group->is_sharded()) reshard(*group);
  goes_back_ = false;
}

void Engine::accept_gradients() {
  for (const auto& group : groups_)
    if (group->trains()) group->accept_gradient();
}

/// Once for all groups: the host does not stop between them, and the last is at the end of backward all the same.
void Engine::await_offloaded_gradients() {
  const auto has_arriving = [](const auto& group) { return group->has_arriving(); };
  if (std::ranges::none_of(groups_, has_arriving)) return;
  for (const auto& group : groups_) group->end_sending();
  if (!dry_run()) synchronize(policy_.device);
  for (const auto& group : groups_)
    if (group->has_arriving()) group->take_arrived();
}

void Engine::release_gradients() {
  for (const auto& group : groups_) group->release_gradient();
  scales_are_current_ = false;
}

ops::SquareSums Engine::gradient_squares() const {
  std::vector<Tensor> gradients;
  for (const ParameterShard& shard : shards_)
    if (shard.gradient.defined()) gradients.push_back(shard.gradient.rows(shard.counted.begin, shard.counted.count));
  return ops::sums_of_squares(gradients);
}

void Engine::unshard(Group& group) {
  gather(group);
  finish_gather(group);
}

void Engine::use(Group& group) {
  finish_gather(group);
  tell(Event::Kind::Use, group);
}

void Engine::prefetch_forward(Group& group) {
  const auto given = forward_ahead_.find(&group);
  if (given == forward_ahead_.end()) return prefetch_after(group, forward_order_, policy_.prefetch.forward);
  for (Group* const next : given->second) gather(*next);
}

void Engine::prefetch_backward(Group& group) {
  const auto given = backward_ahead_.find(&group);
  if (given == backward_ahead_.end()) return prefetch_after(group, backward_order_, policy_.prefetch.backward);
  for (Group* const next : given->second) gather(*next);
}

/// Starts on the next `count` groups after `group` in `order`.
void Engine::prefetch_after(Group& group, const std::vector<Group*>& order, int count) {
  auto next = std::ranges::find(order, &group);
  for (int ahead = 0; ahead < count && next != order.end() && ++next != order.end(); ++ahead) gather(**next);
}

void Engine::gather(Group& group) {
  if (!group.is_sharded()) return;
  update_scales();
  const size_t bytes = group.next_gather_bytes();
  const auto most = static_cast<size_t>(policy_.prefetch.most_in_flight);
  if (bytes > 0 && most > 0 && gathers_.size() >= most) finish_gather(*gathers_.front());
  group.begin_unshard();
  if (bytes == 0) return;  // nothing is sharded
  gathers_.push_back(&group);
  tell(Event::Kind::Gather, group, bytes);
}

/// All at once, by one maximum over the ranks.
void Engine::update_scales() {
  if (std::exchange(scales_are_current_, true)) return;
  int64_t count = 0;
  for (const auto& group : groups_) count += group->scales();
  if (count == 0) return;
  const auto empty = [count](Device device) { return Tensor::empty({count}, DType::Float32, device); };
  const bool are_new = !scales_.scale.defined();
  if (are_new) scales_ = {empty(policy_.device), empty(policy_.device)};
  Tensor most = empty(shards_.front().value.device());
  int64_t begin = 0;
  for (const auto& group : groups_) {
    const int64_t own = group->scales();
    if (own == 0) continue;
    if (are_new) group->use_scales({scales_.scale.rows(begin, own), scales_.inverse.rows(begin, own)});
    Tensor of_group = most.rows(begin, own);
    group->absmax(of_group);
    begin += own;
  }
  most = on_device(most, policy_.device);
  mesh_.of(Dimension::Shard).all_reduce(most, comm::ReduceOp::Max, "float8 scales").wait();
  ops::float8_scale(most, {}, scales_);
  tell(Event::Kind::Scale, *groups_.front(), most.bytes());
}

void Engine::finish_gather(Group& group) {
  group.finish_unshard();
  std::erase(gathers_, &group);
}

void Engine::reshard(Group& group) {
  group.reshard();
  std::erase(gathers_, &group);
  tell(Event::Kind::Reshard, group);
}

/// What ranks of the tensor dimension have of gradients that are sums over them becomes the sum on each.
void Engine::sum_over_tensor(Group& group) {
  if (group.tensor_sum_bytes() == 0) return;
  group.sum_over_tensor();
  tell(Event::Kind::TensorSum, group, group.tensor_sum_bytes());
}

void Engine::reduce(Group& group) {
  sum_over_tensor(group);
  const size_t scattered = group.scatter_bytes(), summed = group.sum_bytes();
  // One scatter at a time, and one sum over replicas behind it: more would only hold more memory. Where nothing is
  // sharded sums are in place and hold none, so they queue.
  if (scattered > 0 || summed == 0) advance_reductions();
  group.begin_reduction();
  if (scattered > 0) {
    tell(Event::Kind::Reduce, group, scattered);
  } else if (summed > 0) {
    tell(Event::Kind::Sum, group, summed);
  }
  reductions_.push_back(&group);
}

void Engine::advance_reductions() {
  for (const auto& group : groups_) group->end_sending();  // one at a time, as scatters are
  std::erase_if(reductions_, [this](Group* group) {
    if (group->advance_reduction()) return true;
    tell(Event::Kind::Sum, *group, group->sum_bytes());
    return false;
  });
}

void Engine::tell(Event::Kind kind, const Group& group, size_t message_bytes) const {
  if (!observer_) return;
  size_t bytes = 0;
  for (const auto& each : groups_) bytes += each->gathered_bytes();
  observer_({kind, group.label(), bytes, message_bytes});
}

}  // namespace trainyard::shard
