#include "shard/unsharded.h"

#include <utility>

#include "ops/cast.h"

namespace trainyard::shard {
namespace {

Layout post_forward_layout(std::span<autograd::Parameter* const> parameters,
                           const comm::Communicator* post_forward_mesh, DType dtype) {
  return post_forward_mesh ? Layout(parameters, post_forward_mesh->world(), post_forward_mesh->rank(), dtype)
                           : Layout({}, 1, 0);
}

/// `rows` rows of a piece as it is placed in a dtype: in its parameter's shape, packed ones as a matrix of bytes.
Shape shape_of(const Piece& piece, int64_t rows, DType dtype) {
  if (dtype == DType::UInt8) return {rows, piece.row_elements};
  Shape shape = piece.parameter->shape();
  shape[0] = rows;
  return shape;
}

Tensor released(int64_t elements, DType dtype, Device device) {
  const MemoryKindScope scope(MemoryKind::Gathered);
  Tensor tensor = Tensor::empty({elements}, dtype, device);
  tensor.storage()->release();
  return tensor;
}

Tensor in_dtype(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  Tensor cast = Tensor::empty(tensor.shape(), dtype, tensor.device());
  ops::cast(tensor, cast);
  return cast;
}

/// `rows` rows of a piece in a shard, as a matrix.
Tensor matrix_of(const Piece& piece, const Tensor& shard, int64_t rows) {
  return shard.rows(piece.shard_offset, rows * piece.row_elements).reshape({rows, piece.row_elements});
}

}  // namespace

Unsharded::Unsharded(std::span<autograd::Parameter* const> parameters, Tensor shard, const Form& form, const Mesh& mesh,
                     const Policy& policy)
    : sharders_(&mesh.of(Dimension::Shard)),
      post_forward_mesh_(mesh.post_forward()),
      layout_(parameters, sharders_->world(), sharders_->rank(), form.kept),
      post_forward_layout_(post_forward_layout(parameters, post_forward_mesh_, form.kept)),
      form_(form),
      param_dtype_(policy.precision.param_dtype),
      device_(policy.device),
      shard_(std::move(shard)),
      in_place_(sharders_->world() == 1 && form.kept == form.value && shard_.device() == device_),
      coalesces_(form.sent == form.value && coalesces(layout_, device_)),
      flat_buffer_(in_place_ ? shard_ : released(layout_.unsharded_elements, form.value, device_)) {}

std::vector<Tensor> Unsharded::shard_rows() const {
  std::vector<Tensor> rows;
  for (const Piece& piece : layout_.pieces)
    rows.push_back(shard_.rows(piece.shard_offset, piece.local.count * piece.row_elements)
                       .reshape(shape_of(piece, piece.local.count, form_.kept)));
  return rows;
}

std::vector<Tensor> Unsharded::values() const {
  std::vector<Tensor> values = unsharded_of(layout_, flat_buffer_);
  for (size_t i = 0; i < values.size(); ++i) {
    const Piece& piece = layout_.pieces[i];
    values[i] = values[i].reshape(shape_of(piece, piece.rows, form_.value));
  }
  return values;
}

int64_t Unsharded::scales() const {
  return is_float8(form_.value) ? std::ssize(layout_.pieces) : 0;
}

void Unsharded::use_scales(const ops::Float8Scale& scales) {
  scales_ = scales;
  int64_t index = 0;
  for (const Piece& piece : layout_.pieces) piece.parameter->place_scale(scales.inverse.rows(index++, 1), param_dtype_);
}

void Unsharded::absmax(Tensor& most) const {
  int64_t index = 0;
  for (const Piece& piece : layout_.pieces) {
    Tensor of_piece = most.rows(index++, 1);
    ops::absmax(matrix_of(piece, shard_, piece.local.count), ops::Along::All, of_piece);
  }
  ops::cast(in_dtype(most, param_dtype_), most);  // rounding keeps the order, so this is the largest rounded one
}

/// The shard is written in the dtype of `to`; what it takes on the way is the current stream's own.
void Unsharded::write_shard(Tensor& to) const {
  if (to.dtype() == shard_.dtype()) return copy_async(shard_, to);
  Tensor shard = shard_;
  if (shard_.device() != device_) {
    shard = Tensor::empty(shard_.shape(), shard_.dtype(), device_);
    copy_async(shard_, shard);
  }
  if (is_float8(to.dtype())) return write_float8(in_dtype(shard, param_dtype_), to);
  ops::cast(shard, to);
}

void Unsharded::write_float8(const Tensor& shard, const Tensor& to) const {
  int64_t index = 0;
  for (const Piece& piece : layout_.pieces)
    ops::float8_cast(matrix_of(piece, shard, piece.chunk_rows),
                     {scales_.scale.rows(index++, 1), matrix_of(piece, to, piece.chunk_rows)}, {});
}

void Unsharded::begin(const std::string& label) {
  if (in_place_) return;
  const MemoryKindScope scope(MemoryKind::Gathered);
  take_buffers();
  Tensor& own = is_alone() ? flat_buffer_ : sent_;
  if (post_forward_shard_.defined() || own.storage() == shard_.storage()) return send(label);
  const auto write_and_send = [&] {
    write_shard(own);
    send(label);
  };
  if (shard_.device() == device_) return write_and_send();
  fetching_ = SideWork(SideWork::Direction::ToDevice, device_, {own}, write_and_send);
}

void Unsharded::take_buffers() {
  if (is_alone()) return flat_buffer_.storage()->materialize();
  if (post_forward_shard_.defined()) {
    sent_ = post_forward_shard_;
  } else if (form_.sent == form_.kept && shard_.device() == device_) {
    sent_ = shard_;
  } else {
    sent_ = Tensor::empty(shard_.shape(), form_.sent, device_);
  }
  if (coalesces_ && !post_forward_shard_.defined()) return flat_buffer_.storage()->materialize();
  const int world = post_forward_shard_.defined() ? post_forward_mesh_->world() : sharders_->world();
  gathered_ = Tensor::empty({world * sent_.count()}, form_.sent, device_);
}

void Unsharded::send(const std::string& label) {
  if (is_alone()) return;
  if (gathered_.defined()) {
    comm::Communicator& peers = post_forward_shard_.defined() ? *post_forward_mesh_ : *sharders_;
    gathering_ = peers.all_gather(sent_, gathered_, label);
    return;
  }
  std::vector<Tensor> wholes = unsharded_of(layout_, flat_buffer_);
  gathering_ = sharders_->all_gather_coalesced(parts_of(layout_, sent_), wholes, label);
}

void Unsharded::finish() {
  std::exchange(gathering_, {}).wait();
  fetching_.wait();
  sent_ = {};
  if (!gathered_.defined()) return;
  flat_buffer_.storage()->materialize();
  copy_out(post_forward_shard_.defined() ? post_forward_layout_ : layout_, gathered_, flat_buffer_);
  gathered_ = {};
}

void Unsharded::release() {
  if (!in_place_) flat_buffer_.storage()->release();
  post_forward_shard_ = {};
}

void Unsharded::release_to_post_forward() {
  const MemoryKindScope scope(MemoryKind::Gathered);
  Tensor part = Tensor::empty({post_forward_layout_.shard_elements}, form_.sent, device_);
  copy_shard_in(post_forward_layout_, post_forward_mesh_->rank(), flat_buffer_, part);
  release();
  post_forward_shard_ = std::move(part);
}

size_t Unsharded::held_bytes() const {
  const bool own_whole = !in_place_ && flat_buffer_.storage()->is_materialized();
  return (own_whole ? flat_buffer_.bytes() : 0) + (gathered_.defined() ? gathered_.bytes() : 0) +
         (post_forward_shard_.defined() ? post_forward_shard_.bytes() : 0);
}

size_t Unsharded::gather_bytes() const {
  if (is_alone()) return 0;
  return static_cast<size_t>(sharders_->world() * layout_.shard_elements) * size_of(form_.sent);
}

size_t Unsharded::post_forward_gather_bytes() const {
  if (!post_forward_mesh_) return gather_bytes();
  return static_cast<size_t>(post_forward_mesh_->world() * post_forward_layout_.shard_elements) * size_of(form_.sent);
}

}  // namespace trainyard::shard
