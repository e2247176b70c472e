#include "shard/group.h"

#include "ops/add.h"
#include "ops/cast.h"
#include "ops/scale.h"

namespace trainyard::shard {
namespace {

Tensor released(int64_t elements, DType dtype) {
  Tensor tensor = Tensor::empty({elements}, dtype);
  tensor.storage()->release();
  return tensor;
}

}  // namespace

Group::Group(std::string label, std::span<autograd::Parameter* const> parameters, const Mesh& mesh,
             const Policy& policy)
    : label_(std::move(label)),
      layout_(parameters, mesh.shard().world(), mesh.shard().rank()),
      sharders_(mesh.shard()),
      replicas_(mesh.replicate()),
      param_dtype_(policy.param_dtype),
      reduce_dtype_(policy.reduce_dtype),
      in_place_(sharders_.world() == 1 && param_dtype_ == DType::Float32),
      // Replicas that reduce every micro-batch add each sum to those before it, so the two must be apart.
      gradient_in_place_(sharders_.world() == 1 && reduce_dtype_ == DType::Float32 &&
                         (replicas_.world() == 1 || !policy.sync_every_micro_batch)),
      shard_(Tensor::zeros({layout_.shard_elements}, DType::Float32)),
      shard_gradient_(released(layout_.shard_elements, DType::Float32)),
      whole_(in_place_ ? shard_ : released(layout_.whole_elements, param_dtype_)),
      whole_gradient_(gradient_in_place_ ? shard_gradient_ : released(layout_.whole_elements, reduce_dtype_)) {
  for (const Piece& piece : layout_.pieces) {
    const int64_t count = piece.rows * piece.row_elements;
    piece.parameter->place(whole_.rows(piece.whole_offset, count).reshape(piece.parameter->shape()),
                           whole_gradient_.rows(piece.whole_offset, count).reshape(piece.parameter->shape()));
  }
}

Tensor Group::gather_input() const {
  if (param_dtype_ == DType::Float32) return shard_;
  Tensor cast = Tensor::empty(shard_.shape(), param_dtype_);
  ops::cast(shard_, cast);
  return cast;
}

void Group::begin_unshard() {
  if (state_ != State::Sharded) return;
  state_ = State::Gathering;
  if (in_place_) return;
  if (sharders_.world() == 1) {
    whole_.storage()->materialize();
    ops::cast(shard_, whole_);
    return;
  }
  gathered_ = Tensor::empty({sharders_.world() * layout_.shard_elements}, param_dtype_);
  gathering_ = sharders_.all_gather(gather_input(), gathered_, label_);
}

void Group::finish_unshard() {
  begin_unshard();
  if (state_ == State::Unsharded) return;
  if (gathered_.defined()) {
    gathering_.wait();
    whole_.storage()->materialize();
    copy_out(layout_, gathered_, whole_);
    gathered_ = {};
  }
  state_ = State::Unsharded;
}

void Group::reshard() {
  if (state_ == State::Gathering) finish_unshard();  // prefetched and then not needed
  if (!in_place_) whole_.storage()->release();
  state_ = State::Sharded;
}

void Group::prepare_gradient() {
  if (whole_gradient_ready_) return;
  whole_gradient_.storage()->materialize();
  ops::set_zero(whole_gradient_);
  whole_gradient_ready_ = true;
}

void Group::begin_reduction() {
  if (sharders_.world() == 1) {
    reduction_ = Reduction::Summing;
    reduced_ = whole_gradient_;
    if (replicas_.world() > 1) reducing_ = replicas_.all_reduce(reduced_, comm::ReduceOp::Sum, label_);
    return;
  }
  reduction_ = Reduction::Scattering;
  reduce_input_ = Tensor::empty({sharders_.world() * layout_.shard_elements}, reduce_dtype_);
  copy_in(layout_, whole_gradient_, reduce_input_);
  whole_gradient_.storage()->release();
  whole_gradient_ready_ = false;
  reduced_ = Tensor::empty({layout_.shard_elements}, reduce_dtype_);
  reducing_ = sharders_.reduce_scatter(reduce_input_, reduced_, label_);
}

bool Group::advance_reduction() {
  reducing_.wait();
  reducing_ = {};
  if (reduction_ == Reduction::Scattering) {
    reduce_input_ = {};
    reduction_ = Reduction::Summing;
    if (replicas_.world() > 1) {
      reducing_ = replicas_.all_reduce(reduced_, comm::ReduceOp::Sum, label_);
      return false;
    }
  }
  accumulate(reduced_);
  reduced_ = {};
  reduction_ = Reduction::None;
  return true;
}

void Group::accumulate(const Tensor& reduced) {
  if (!gradient_in_place_) {
    shard_gradient_.storage()->materialize();
    if (has_gradient_) {
      ops::add_to(shard_gradient_, reduced);
    } else {
      ops::cast(reduced, shard_gradient_);
    }
    if (sharders_.world() == 1) {
      whole_gradient_.storage()->release();
      whole_gradient_ready_ = false;
    }
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
  return (own_whole ? whole_.bytes() : 0) + (gathered_.defined() ? gathered_.bytes() : 0);
}

}  // namespace trainyard::shard
