#include "shard/group.h"

#include <algorithm>
#include <utility>

#include "ops/add.h"
#include "ops/cast.h"
#include "ops/scale.h"

namespace trainyard::shard {
namespace {

/// Of one dimension; `offloads`: in pinned host memory instead of on the device.
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

/// Every parameter's rows divide by the ranks: nothing is padded.
bool is_even(const Layout& layout) {
  return std::ranges::all_of(layout.pieces, [&](const Piece& piece) { return piece.rows % layout.world == 0; });
}

/// Of each piece its view of a padded shard, and of the unsharded parameters.
std::vector<Tensor> parts_of(const Layout& layout, const Tensor& shard) {
  std::vector<Tensor> parts;
  for (const Piece& piece : layout.pieces)
    parts.push_back(shard.rows(piece.shard_offset, piece.chunk_rows * piece.row_elements));
  return parts;
}
std::vector<Tensor> wholes_of(const Layout& layout, const Tensor& whole) {
  std::vector<Tensor> wholes;
  for (const Piece& piece : layout.pieces)
    wholes.push_back(whole.rows(piece.whole_offset, piece.rows * piece.row_elements));
  return wholes;
}

Layout part_layout(std::span<autograd::Parameter* const> parameters, const comm::Communicator* regatherers) {
  return regatherers ? Layout(parameters, regatherers->world(), regatherers->rank()) : Layout({}, 1, 0);
}

}  // namespace

Group::Group(std::string label, std::span<autograd::Parameter* const> parameters, const Mesh& mesh,
             const Policy& policy)
    : label_(std::move(label)),
      sharders_(mesh.shard()),
      replicas_(mesh.replicate()),
      regatherers_(mesh.regather()),
      layout_(parameters, sharders_.world(), sharders_.rank()),
      gradient_layout_(trained(parameters), sharders_.world(), sharders_.rank()),
      part_layout_(part_layout(parameters, regatherers_)),
      precision_(policy.precision),
      bucket_bytes_(policy.bucket_bytes),
      device_(policy.device),
      offloads_(policy.offload && device_.kind != DeviceKind::Cpu),
      in_place_(sharders_.world() == 1 && precision_.param_dtype == DType::Float32 && !offloads_),
      // Replicas that reduce every micro-batch add each sum to those before it, so the two must be apart.
      gradient_in_place_(sharders_.world() == 1 && precision_.reduce_dtype == DType::Float32 && !offloads_ &&
                         (replicas_.world() == 1 || !policy.sync_every_micro_batch)),
      // On the CPU one message for all is faster than the copies cost.
      coalesces_(device_.kind != DeviceKind::Cpu && sharders_.world() > 1 && is_even(layout_)),
      shard_(zeroed(empty(layout_.shard_elements, DType::Float32, MemoryKind::Parameters, device_, offloads_))),
      shard_gradient_(
          released(empty(gradient_layout_.shard_elements, DType::Float32, MemoryKind::Gradients, device_, offloads_))),
      whole_(in_place_
                 ? shard_
                 : released(empty(layout_.whole_elements, precision_.param_dtype, MemoryKind::Gathered, device_))),
      whole_gradient_(gradient_in_place_ ? shard_gradient_
                                         : released(empty(gradient_layout_.whole_elements, precision_.reduce_dtype,
                                                          MemoryKind::Gathered, device_))) {
  place_parameters();
}

void Group::place_parameters() {
  auto gradient = gradient_layout_.pieces.begin();
  for (const Piece& piece : layout_.pieces) {
    const int64_t count = piece.rows * piece.row_elements;
    const Shape& shape = piece.parameter->shape();
    const Tensor value = whole_.rows(piece.whole_offset, count).reshape(shape);
    if (piece.parameter->is_frozen()) {
      piece.parameter->place(value, {});
      continue;
    }
    piece.parameter->place(value, whole_gradient_.rows(gradient->whole_offset, count).reshape(shape),
                           [this] { prepare_gradient(); });
    ++gradient;
  }
}

Tensor Group::shard_on_device() const {
  if (!offloads_) return shard_;
  Tensor there = Tensor::empty(shard_.shape(), shard_.dtype(), device_);
  copy_async(shard_, there);
  return there;
}

Tensor Group::gather_input() const {
  if (part_.defined()) return part_;
  const Tensor shard = shard_on_device();
  if (precision_.param_dtype == DType::Float32) return shard;
  Tensor cast = Tensor::empty(shard.shape(), precision_.param_dtype, device_);
  ops::cast(shard, cast);
  return cast;
}

void Group::begin_unshard() {
  if (state_ != State::Sharded) return;
  state_ = State::Gathering;
  if (in_place_) return;
  const MemoryKindScope scope(MemoryKind::Gathered);
  if (sharders_.world() == 1) {
    whole_.storage()->materialize();
    ops::cast(shard_on_device(), whole_);
    return;
  }
  comm::Communicator& peers = part_.defined() ? *regatherers_ : sharders_;
  const Tensor input = gather_input();
  if (coalesces_ && !part_.defined()) return gather_in_place(input);
  gathered_ = Tensor::empty({peers.world() * input.count()}, precision_.param_dtype, device_);
  gathering_ = peers.all_gather(input, gathered_, label_);
}

void Group::gather_in_place(const Tensor& input) {
  whole_.storage()->materialize();
  std::vector<Tensor> wholes = wholes_of(layout_, whole_);
  gathering_ = sharders_.all_gather_coalesced(parts_of(layout_, input), wholes, label_);
}

void Group::finish_unshard() {
  begin_unshard();
  if (state_ == State::Unsharded) return;
  std::exchange(gathering_, {}).wait();
  if (gathered_.defined()) {
    whole_.storage()->materialize();
    copy_out(part_.defined() ? part_layout_ : layout_, gathered_, whole_);
    gathered_ = {};
  }
  state_ = State::Unsharded;
}

void Group::reshard() {
  if (state_ == State::Gathering) finish_unshard();  // prefetched and then not needed
  if (!in_place_) whole_.storage()->release();
  part_ = {};
  state_ = State::Sharded;
}

void Group::reshard_to_part() {
  const MemoryKindScope scope(MemoryKind::Gathered);
  Tensor part = Tensor::empty({part_layout_.shard_elements}, precision_.param_dtype, device_);
  copy_shard_in(part_layout_, regatherers_->rank(), whole_, part);
  reshard();
  part_ = std::move(part);
}

/// Zero, unless an earlier micro-batch left its sum there.
void Group::prepare_gradient() {
  if (whole_gradient_ready_) return;
  whole_gradient_.storage()->materialize();
  ops::set_zero(whole_gradient_);
  whole_gradient_ready_ = true;
}

void Group::begin_reduction() {
  prepare_gradient();  // nothing may have come: a rank without rows
  if (sharders_.world() == 1) {
    reduced_ = whole_gradient_;
    return begin_sum();
  }
  const MemoryKindScope scope(MemoryKind::Gathered);
  reduction_ = Reduction::Scattering;
  reduced_ = Tensor::empty({gradient_layout_.shard_elements}, precision_.reduce_dtype, device_);
  if (coalesces_) return scatter_in_place();
  reduce_input_ =
      Tensor::empty({sharders_.world() * gradient_layout_.shard_elements}, precision_.reduce_dtype, device_);
  copy_in(gradient_layout_, whole_gradient_, reduce_input_);
  release_whole_gradient();
  reducing_ = {sharders_.reduce_scatter(reduce_input_, reduced_, label_)};
}

void Group::scatter_in_place() {
  std::vector<Tensor> parts = parts_of(gradient_layout_, reduced_);
  reducing_ = {sharders_.reduce_scatter_coalesced(wholes_of(gradient_layout_, whole_gradient_), parts, label_)};
}

void Group::release_whole_gradient() {
  whole_gradient_.storage()->release();
  whole_gradient_ready_ = false;
}

void Group::begin_sum() {
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
    begin_sum();
    if (!reducing_.empty()) return false;
  }
  accumulate(reduced_);
  reduced_ = {};
  reduction_ = Reduction::None;
  return true;
}

void Group::accumulate(const Tensor& reduced) {
  if (!gradient_in_place_) {
    shard_gradient_.storage()->materialize();
    const Tensor here = on_device(reduced, shard_gradient_.device());
    if (has_gradient_) {
      ops::add_to(shard_gradient_, here);
    } else {
      ops::cast(here, shard_gradient_);
    }
    if (sharders_.world() == 1) release_whole_gradient();
  }
  has_gradient_ = true;
}

void Group::release_gradient() {
  shard_gradient_.storage()->release();
  if (gradient_in_place_) whole_gradient_ready_ = false;
  has_gradient_ = false;
}

size_t Group::gathered_bytes() const {
  const bool own_whole = !in_place_ && whole_.storage()->is_materialized();
  return (own_whole ? whole_.bytes() : 0) + (gathered_.defined() ? gathered_.bytes() : 0) +
         (part_.defined() ? part_.bytes() : 0);
}

size_t Group::gather_bytes() const {
  if (sharders_.world() == 1) return 0;
  return static_cast<size_t>(sharders_.world() * layout_.shard_elements) * size_of(precision_.param_dtype);
}

size_t Group::regather_bytes() const {
  if (!regatherers_) return gather_bytes();
  return static_cast<size_t>(regatherers_->world() * part_layout_.shard_elements) * size_of(precision_.param_dtype);
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
