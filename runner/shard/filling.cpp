#include "shard/filling.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "ops/cast.h"
#include "ops/columns.h"
#include "ops/nf4.h"
#include "ops/norm.h"

namespace trainyard::shard {
namespace {

Rows whole_rows_of(const ParameterShard& shard) {
  const autograd::Part& part = shard.parameter->part();
  return {shard.rows.begin + (part.dimension == 0 ? part.begin : 0), shard.rows.count};
}

bool is_on_host(const Tensor& tensor) {
  return tensor.device().kind == DeviceKind::Cpu;
}

Tensor rounded_to(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  Tensor cast = Tensor::empty(tensor.shape(), dtype);
  ops::cast(tensor, cast);
  return cast;
}

}  // namespace

ShardFilling::ShardFilling(ParameterShard& shard) : shard_(shard), wanted_(whole_rows_of(shard)) {
  if (!shard.parameter->is_nf4()) return;
  const Tensor& value = shard.value;
  packed_ = is_on_host(value) ? value : Tensor::empty(value.shape(), value.dtype());
  most_ = Tensor::empty({shard.rows.count, shard.parameter->shape()[1] / ops::kNf4Block}, DType::Float32);
}

bool ShardFilling::is_in_place() const {
  return is_on_host(shard_.value) && shard_.value.dtype() == DType::Float32 && shard_.parameter->part().dimension == 0;
}

void ShardFilling::take(Rows rows, const Tensor& block) {
  const int64_t from = std::max(rows.begin, wanted_.begin),
                to = std::min(rows.begin + rows.count, wanted_.begin + wanted_.count);
  if (from >= to) return;
  Tensor taken = block.rows(from - rows.begin, to - from);
  if (packed_.defined()) return pack(taken, from - wanted_.begin);
  Tensor own = shard_.value.rows(from - wanted_.begin, to - from);
  if (const autograd::Part& part = shard_.parameter->part(); part.dimension == 1) {
    Tensor columns = Tensor::empty({to - from, own.size(1)}, DType::Float32);
    ops::copy_columns(taken, part.begin, own.size(1), columns, 0);
    taken = columns;
  }
  copy(rounded_to(taken, own.dtype()), own);
}

void ShardFilling::pack(const Tensor& values, int64_t first) {
  if (!ops::all_finite(values))
    throw InputError(fmt::format("{}: has a value that is not finite, which NF4 (lora.base_dtype) cannot hold",
                                 shard_.parameter->name()));
  Tensor packed = packed_.rows(first, values.size(0)), most = most_.rows(first, values.size(0));
  ops::nf4_encode(values, packed, most);
}

void ShardFilling::finish(comm::Communicator& sharders, Device device) {
  if (!packed_.defined()) return;
  autograd::Parameter& parameter = *shard_.parameter;
  const int64_t rows = parameter.shape()[0], blocks = most_.size(1);
  Tensor all = most_;
  if (sharders.world() > 1) {
    Tensor sent = Tensor::zeros({chunk_of(rows, sharders.world(), 0).count, blocks}, DType::Float32);
    Tensor own = sent.rows(0, most_.size(0));
    copy(most_, own);
    Tensor gathered = Tensor::empty({sharders.world() * sent.size(0), blocks}, DType::Float32, device);
    sharders.all_gather(on_device(sent, device), gathered, parameter.name()).wait();
    all = on_device(gathered, {});
  }
  ops::Nf4Scales scales{Tensor::empty(parameter.nf4_scales().factor.shape(), DType::Float32),
                        Tensor::empty({1}, DType::Float32)};
  ops::nf4_scales(all.rows(0, rows), scales);
  ops::nf4_scale(most_, scales, shard_.rows.begin, packed_);
  if (packed_.storage() != shard_.value.storage()) copy(packed_, shard_.value);
  copy(scales.factor, parameter.nf4_scales().factor);
  copy(scales.mean, parameter.nf4_scales().mean);
}

}  // namespace trainyard::shard
