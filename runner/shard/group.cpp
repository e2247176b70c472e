#include "shard/group.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "ops/add.h"
#include "ops/cast.h"
#include "ops/scale.h"

namespace trainyard::shard {
namespace {

/// A tensor of one dimension; `offloads`: in pinned host memory instead of on the device.
Tensor empty(int64_t elements, DType dtype, MemoryKind kind, Device device, bool offloads = false) {
  const MemoryKindScope scope(kind);
  return offloads ? Tensor::pinned({elements}, dtype) : Tensor::empty({elements}, dtype, device);
}

Tensor zeroed(Tensor tensor) {
  ops::set_zero(tensor);
  return tensor;
}

Tensor released(Tensor tensor) {
  tensor.storage()->release();
  return tensor;
}

std::vector<autograd::Parameter*> trained(std::span<autograd::Parameter* const> parameters) {
  std::vector<autograd::Parameter*> some(parameters.begin(), parameters.end());
  std::erase_if(some, [](const autograd::Parameter* parameter) { return parameter->is_frozen(); });
  return some;
}

/// Whether its gathers are in 8 bits; one rank alone gathers nothing.
bool gathers_float8(const autograd::Parameter* parameter, const Mesh& mesh, const Policy& policy) {
  return policy.float8_all_gather && parameter->float8() && mesh.of(Dimension::Shard).world() > 1;
}

Form form_of(const autograd::Parameter* parameter, const Mesh& mesh, const Policy& policy) {
  const DType param_dtype = policy.precision.param_dtype;
  if (parameter->is_nf4()) return {DType::UInt8, DType::UInt8, DType::UInt8};
  const DType kept = parameter->is_base() ? policy.base_dtype.value_or(param_dtype) : DType::Float32;
  if (gathers_float8(parameter, mesh, policy)) return {kept, DType::Float8E4M3, DType::Float8E4M3};
  return {kept, parameter->is_base() ? kept : param_dtype, param_dtype};
}

/// Those that may be gathered in 8 bits last, and a base after what is trained, so that each message's parameters are
/// side by side; whether they differ or not, so that sums over a shard have one order.
std::vector<autograd::Parameter*> by_message(std::span<autograd::Parameter* const> parameters) {
  std::vector<autograd::Parameter*> sorted(parameters.begin(), parameters.end());
  std::ranges::stable_sort(sorted, {}, [](const autograd::Parameter* parameter) {
    return std::tuple(parameter->float8().has_value(), parameter->is_base(), parameter->is_nf4());
  });
  return sorted;
}

bool is_partial(const Piece& piece) {
  return piece.parameter->part().is_partial_gradient;
}

/// All of each parameter: what no rank has twice is 0 elsewhere.
int64_t tensor_sum_elements(const Layout& layout) {
  int64_t elements = 0;
  for (const Piece& piece : layout.pieces)
    if (is_partial(piece)) elements += count_of(piece.parameter->whole_shape());
  return elements;
}

struct Message {
  Form form;
  std::vector<autograd::Parameter*> parameters;
};

/// In the order of the layout.
std::vector<Message> messages_of(const Layout& layout, const Mesh& mesh, const Policy& policy) {
  std::vector<Message> messages;
  for (const Piece& piece : layout.pieces) {
    const Form form = form_of(piece.parameter, mesh, policy);
    if (messages.empty() || messages.back().form != form) messages.push_back({form, {}});
    messages.back().parameters.push_back(piece.parameter);
  }
  return messages;
}

}  // namespace

Group::Group(std::string label, std::span<autograd::Parameter* const> parameters, const Mesh& mesh,
             const Policy& policy)
    : label_(std::move(label)),
      sharders_(mesh.of(Dimension::Shard)),
      replicas_(mesh.of(Dimension::Replicate)),
      tensor_(mesh.of(Dimension::Tensor)),
      layout_(by_message(parameters), sharders_.world(), sharders_.rank()),
      gradient_layout_(trained(by_message(parameters)), sharders_.world(), sharders_.rank()),
      precision_(policy.precision),
      bucket_bytes_(policy.bucket_bytes),
      device_(policy.device),
      offloads_(policy.offload && device_.kind != DeviceKind::Cpu),
      // Ranks that sum every micro-batch add each sum to those before it, so the two must be apart.
      gradient_in_place_(sharders_.world() == 1 && precision_.reduce_dtype == DType::Float32 && !offloads_ &&
                         ((replicas_.world() == 1 && !has_tensor_sum()) || !policy.sync_every_micro_batch)),
      coalesces_(coalesces(gradient_layout_, device_)),
      unsharded_(all_messages(mesh, policy)),
      shard_gradient_(
          released(empty(gradient_layout_.shard_elements, DType::Float32, MemoryKind::Gradients, device_, offloads_))),
      unsharded_gradient_(gradient_in_place_
                              ? shard_gradient_
                              : released(empty(gradient_layout_.unsharded_elements, precision_.reduce_dtype,
                                               MemoryKind::Gathered, device_))) {
  place_parameters();
}

/// The messages of all gathers, each with its shard.
std::vector<Unsharded> Group::all_messages(const Mesh& mesh, const Policy& policy) const {
  std::vector<Unsharded> all;
  for (const auto& [form, parameters_of] : messages_of(layout_, mesh, policy)) {
    const int64_t elements = Layout(parameters_of, sharders_.world(), sharders_.rank(), form.kept).shard_elements;
    all.emplace_back(parameters_of, zeroed(empty(elements, form.kept, MemoryKind::Parameters, device_, offloads_)),
                     form, mesh, policy);
  }
  return all;
}

std::vector<Tensor> Group::shard_rows() const {
  std::vector<Tensor> rows;
  for (const Unsharded& each : unsharded_) std::ranges::move(each.shard_rows(), std::back_inserter(rows));
  return rows;
}

/// The scales of a whole parameter: any of its rows is read with them, and they are few.
ops::Nf4Scales Group::empty_scales(const Piece& piece) const {
  return {empty(ops::nf4_factors(piece.parameter->count()), DType::Float32, MemoryKind::Parameters, device_),
          empty(1, DType::Float32, MemoryKind::Parameters, device_)};
}

void Group::place_parameters() {
  std::vector<Tensor> values;
  for (const Unsharded& each : unsharded_) std::ranges::move(each.values(), std::back_inserter(values));
  auto value_of = values.begin();
  auto gradient = gradient_layout_.pieces.begin();
  for (const Piece& piece : layout_.pieces) {
    const int64_t count = piece.rows * piece.row_elements;
    const Shape& shape = piece.parameter->shape();
    const Tensor value = *value_of++;
    if (piece.parameter->is_frozen()) {
      piece.parameter->place(value, {});
      if (piece.parameter->is_nf4()) piece.parameter->place_nf4_scales(empty_scales(piece), precision_.param_dtype);
      continue;
    }
    piece.parameter->place(value, unsharded_gradient_.rows(gradient->whole_offset, count).reshape(shape),
                           [this] { prepare_gradient(); });
    ++gradient;
  }
}

int64_t Group::scales() const {
  return unsharded_.back().scales();
}

void Group::use_scales(const ops::Float8Scale& scales) {
  unsharded_.back().use_scales(scales);
}

void Group::absmax(Tensor& most) const {
  unsharded_.back().absmax(most);
}

void Group::begin_unshard() {
  if (state_ != State::Sharded) return;
  state_ = State::Gathering;
  for (Unsharded& each : unsharded_) each.begin(label_);
}

void Group::finish_unshard() {
  begin_unshard();
  if (state_ == State::Unsharded) return;
  for (Unsharded& each : unsharded_) each.finish();
  state_ = State::Unsharded;
}

void Group::reshard() {
  if (state_ == State::Gathering) finish_unshard();  // prefetched and then not needed
  for (Unsharded& each : unsharded_) each.release();
  state_ = State::Sharded;
}

void Group::reshard_to_post_forward() {
  if (state_ == State::Gathering) finish_unshard();
  for (Unsharded& each : unsharded_) each.release_to_post_forward();
  state_ = State::Sharded;
}

/// New, unless an earlier micro-batch left its sum there.
void Group::prepare_gradient() {
  if (whole_gradient_ready_) return;
  unsharded_gradient_.storage()->materialize();
  for (const Piece& piece : gradient_layout_.pieces) piece.parameter->begin_gradient();
  whole_gradient_ready_ = true;
}

bool Group::has_tensor_sum() const {
  return tensor_.world() > 1 && std::ranges::any_of(gradient_layout_.pieces, is_partial);
}

size_t Group::tensor_sum_bytes() const {
  return tensor_.world() == 1
             ? 0
             : static_cast<size_t>(tensor_sum_elements(gradient_layout_)) * size_of(precision_.reduce_dtype);
}

void Group::sum_over_tensor() {
  const MemoryKindScope scope(MemoryKind::Gathered);
  Tensor sums = Tensor::empty({tensor_sum_elements(gradient_layout_)}, precision_.reduce_dtype, device_);
  ops::set_zero(sums);
  const auto for_each = [&](const auto& act) {
    int64_t begin = 0;
    for (const Piece& piece : gradient_layout_.pieces) {
      if (!is_partial(piece)) continue;
      Tensor gradient = piece.parameter->gradient();
      gradient = gradient.reshape({gradient.count()});
      Tensor place = sums.rows(begin + piece.parameter->part().begin * piece.row_elements, gradient.count());
      act(gradient, place);
      begin += count_of(piece.parameter->whole_shape());
    }
  };
  for_each([](const Tensor& gradient, Tensor& place) { copy(gradient, place); });
  tensor_.all_reduce(sums, comm::ReduceOp::Sum, label_).wait();
  for_each([](Tensor& gradient, const Tensor& place) { copy(place, gradient); });
}

void Group::begin_reduction() {
  // Nothing may have come: a rank without rows, a parameter that nothing went through.
  for (const Piece& piece : gradient_layout_.pieces) static_cast<void>(piece.parameter->gradient());
  if (sharders_.world() == 1) {
    reduced_ = unsharded_gradient_;
    return begin_all_reduce();
  }
  const MemoryKindScope scope(MemoryKind::Gathered);
  reduction_ = Reduction::Scattering;
  reduced_ = Tensor::empty({gradient_layout_.shard_elements}, precision_.reduce_dtype, device_);
  if (coalesces_) return scatter_in_place();
  reduce_input_ =
      Tensor::empty({sharders_.world() * gradient_layout_.shard_elements}, precision_.reduce_dtype, device_);
  copy_in(gradient_layout_, unsharded_gradient_, reduce_input_);
  release_whole_gradient();
  reducing_ = {sharders_.reduce_scatter(reduce_input_, reduced_, label_)};
}

void Group::scatter_in_place() {
  std::vector<Tensor> parts = parts_of(gradient_layout_, reduced_);
  reducing_ = {sharders_.reduce_scatter_coalesced(unsharded_of(gradient_layout_, unsharded_gradient_), parts, label_)};
}

void Group::release_whole_gradient() {
  unsharded_gradient_.storage()->release();
  whole_gradient_ready_ = false;
}

void Group::begin_all_reduce() {
  reduction_ = Reduction::Summing;
  if (replicas_.world() == 1) return;
  const int64_t most = elements_a_message();
  for (int64_t begin = 0; begin < reduced_.count(); begin += most) {
    Tensor bucket = reduced_.rows(begin, std::min(most, reduced_.count() - begin));
    reducing_.push_back(replicas_.all_reduce(bucket, comm::ReduceOp::Sum, label_));
  }
}

bool Group::advance_reduction() {
  for (const comm::Work& work : reducing_) work.wait();
  reducing_.clear();
  if (reduction_ == Reduction::Scattering) {
    reduce_input_ = {};
    if (coalesces_) release_whole_gradient();
    begin_all_reduce();
    if (!reducing_.empty()) return false;
  }
  accumulate(reduced_);
  reduced_ = {};
  reduction_ = Reduction::None;
  return true;
}

void Group::accumulate(const Tensor& reduced) {
  if (gradient_in_place_) {
    has_gradient_ = true;
    return;
  }
  shard_gradient_.storage()->materialize();
  if (offloads_) return send_to_host(reduced);
  add(reduced);
  if (sharders_.world() == 1) release_whole_gradient();
}

/// It is sent to where it belongs, if that is empty and as wide.
void Group::send_to_host(const Tensor& reduced) {
  arriving_ = has_gradient_ || reduced.dtype() != DType::Float32
                  ? empty(reduced.count(), reduced.dtype(), MemoryKind::Gradients, device_, offloads_)
                  : shard_gradient_;
  sending_ =
      SideWork(SideWork::Direction::ToHost, device_, {reduced, arriving_}, [&] { copy_async(reduced, arriving_); });
}

void Group::end_sending() {
  if (!sending_.is_under_way()) return;
  sending_.wait();
  if (sharders_.world() == 1) release_whole_gradient();
}

void Group::take_arrived() {
  if (arriving_.storage() == shard_gradient_.storage()) {
    has_gradient_ = true;
  } else {
    add(arriving_);
  }
  arriving_ = {};
}

void Group::add(const Tensor& reduced) {
  if (has_gradient_) {
    ops::add_to(shard_gradient_, reduced);
  } else {
    ops::cast(reduced, shard_gradient_);
  }
  has_gradient_ = true;
}

void Group::accept_gradient() {
  has_gradient_ = true;
  whole_gradient_ready_ = gradient_in_place_;
}

void Group::release_gradient() {
  shard_gradient_.storage()->release();
  if (gradient_in_place_) whole_gradient_ready_ = false;
  has_gradient_ = false;
}

size_t Group::sum_over_messages(size_t (Unsharded::*bytes)() const) const {
  size_t sum = 0;
  for (const Unsharded& each : unsharded_) sum += (each.*bytes)();
  return sum;
}

size_t Group::gathered_bytes() const {
  return sum_over_messages(&Unsharded::held_bytes);
}

size_t Group::gather_bytes() const {
  return sum_over_messages(&Unsharded::gather_bytes);
}

size_t Group::post_forward_gather_bytes() const {
  return sum_over_messages(&Unsharded::post_forward_gather_bytes);
}

size_t Group::next_gather_bytes() const {
  return unsharded_.front().has_post_forward_shard() ? post_forward_gather_bytes() : gather_bytes();
}

size_t Group::scatter_bytes() const {
  if (sharders_.world() == 1) return 0;
  return static_cast<size_t>(sharders_.world() * gradient_layout_.shard_elements) * size_of(precision_.reduce_dtype);
}

size_t Group::sum_bytes() const {
  return replicas_.world() == 1
             ? 0
             : static_cast<size_t>(gradient_layout_.shard_elements) * size_of(precision_.reduce_dtype);
}

/// What is sharded is one message however large; where nothing is, a bucket of DDP's.
int64_t Group::elements_a_message() const {
  const int64_t all = std::max<int64_t>(gradient_layout_.shard_elements, 1);
  if (sharders_.world() > 1) return all;
  return std::clamp<int64_t>(bucket_bytes_ / static_cast<int64_t>(size_of(precision_.reduce_dtype)), 1, all);
}

int64_t Group::sum_messages() const {
  if (replicas_.world() == 1) return 0;
  const int64_t most = elements_a_message();
  return (gradient_layout_.shard_elements + most - 1) / most;
}

}  // namespace trainyard::shard
