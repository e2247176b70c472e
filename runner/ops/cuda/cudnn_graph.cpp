#include "ops/cuda/cudnn_graph.h"

#include <algorithm>

namespace trainyard::ops::cuda {
namespace {

constexpr int64_t kAlignment = 16,
                  kAlignmentOfInt32 = 4;  // bytes; vectors are loaded by 16, numbers of rows one by one
constexpr size_t kMostKernels = 16;

/// The first of the kernels that cuDNN proposes, the fastest by its own estimate first, that it can make.
Descriptor make_kernel(const CudnnDevice& on, std::deque<Descriptor>& parts,
                       std::span<const cudnnBackendDescriptor_t> operations) {
  Descriptor& graph = parts.emplace_back(on, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, on.handle).set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations).finalize();
  Descriptor& proposals = parts.emplace_back(on, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  proposals.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A)
      .finalize();
  std::vector<cudnnBackendDescriptor_t> proposed;
  for (size_t i = 0; i < kMostKernels; ++i)
    proposed.push_back(parts.emplace_back(on, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).handle());
  const size_t count = proposals.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, proposed);
  std::string refusal = "it proposes none (most of them it compiles, with libnvrtc)";
  for (size_t i = 0; i < count; ++i) try {
      Descriptor kernel(on, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      kernel.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, on.handle)
          .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, std::span<const cudnnBackendDescriptor_t>(&proposed.at(i), 1))
          .finalize();
      return kernel;
    } catch (const CudnnRefusal& of_this) {
      refusal = of_this.what();
    }
  throw CudnnRefusal(refusal);
}

}  // namespace

Descriptor::Descriptor(const CudnnDevice& on, cudnnBackendDescriptorType_t type) : on_(&on) {
  check(on.library, on.library.create_descriptor(type, &handle_), "cudnnBackendCreateDescriptor", on.index);
}

Descriptor::~Descriptor() {
  if (handle_) static_cast<void>(on_->library.destroy_descriptor(handle_));
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                     const void* values) {
  check(on_->library, on_->library.set_attribute(handle_, name, type, count, values), "cudnnBackendSetAttribute",
        on_->index);
}

void Descriptor::finalize() {
  check(on_->library, on_->library.finalize(handle_), "cudnnBackendFinalize", on_->index);
}

int64_t Descriptor::number(cudnnBackendAttributeName_t name) const {
  int64_t value = 0, count = 0;
  check(on_->library, on_->library.get_attribute(handle_, name, CUDNN_TYPE_INT64, 1, &count, &value),
        "cudnnBackendGetAttribute", on_->index);
  return value;
}

size_t Descriptor::get(cudnnBackendAttributeName_t name, std::span<cudnnBackendDescriptor_t> found) const {
  int64_t count = 0;
  const auto most = static_cast<int64_t>(found.size());
  check(on_->library,
        on_->library.get_attribute(handle_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &count, found.data()),
        "cudnnBackendGetAttribute", on_->index);
  return static_cast<size_t>(std::min(count, most));
}

Layout Layout::packed(const std::array<int64_t, 4>& sizes) {
  return {sizes, {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1}};
}

Layout Layout::transposed() const {
  Layout other = *this;
  std::swap(other.sizes[2], other.sizes[3]);
  std::swap(other.strides[2], other.strides[3]);
  return other;
}

Value Graph::add(int64_t id, cudnnDataType_t type, const Layout& layout, bool is_virtual, bool is_number) {
  Descriptor made(*on_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const int64_t>(layout.sizes))
      .set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const int64_t>(layout.strides))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, type == CUDNN_DATA_INT32 ? kAlignmentOfInt32 : kAlignment);
  if (is_virtual) made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  if (is_number) made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  made.finalize();
  return &nodes_.emplace_back(Node{layout, std::move(made)});
}

Value Graph::memory(int64_t id, cudnnDataType_t type, const Layout& layout) {
  return add(id, type, layout, false, false);
}

Value Graph::temporary(const Layout& layout, cudnnDataType_t type) {
  return add(next_id_++, type, layout, true, false);
}

Value Graph::number(float value) {
  numbers_[next_id_] = value;
  return add(next_id_++, CUDNN_DATA_FLOAT, Layout::packed({1, 1, 1, 1}), false, true);
}

void Graph::operation(Descriptor& made) {
  made.finalize();
  operations_.push_back(made.handle());
}

Value Graph::matmul(Value a, Value b, Value to, const Counted& counted) {
  Descriptor& product = part(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  product.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalize();
  Descriptor& made = part(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a->descriptor)
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b->descriptor)
      .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, to->descriptor)
      .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, product);
  const auto limit = [&](cudnnBackendAttributeName_t name, Value count) {
    if (count) made.set(name, count->descriptor);
  };
  limit(CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, counted.rows);
  limit(CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, counted.columns);
  limit(CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, counted.inner);
  operation(made);
  return to;
}

Value Graph::pointwise(cudnnPointwiseMode_t mode, std::initializer_list<Value> operands, Value to,
                       cudnnDataType_t compute) {
  Descriptor& function = part(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  function.set(CUDNN_ATTR_POINTWISE_MODE, mode).set(CUDNN_ATTR_POINTWISE_MATH_PREC, compute).finalize();
  Descriptor& made = part(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function);
  constexpr std::array kNames{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                              CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
  size_t place = 0;
  for (const Value operand : operands) made.set(kNames.at(place++), operand->descriptor);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to->descriptor);
  operation(made);
  return to;
}

Value Graph::index(int64_t axis, Value like, cudnnDataType_t compute) {
  const Value to = temporary(like->layout, CUDNN_DATA_INT32);
  Descriptor& function = part(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  function.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_GEN_INDEX)
      .set(CUDNN_ATTR_POINTWISE_MATH_PREC, compute)
      .set(CUDNN_ATTR_POINTWISE_AXIS, axis)
      .finalize();
  Descriptor& made = part(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, like->descriptor)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to->descriptor);
  operation(made);
  return to;
}

Value Graph::reduce(cudnnReduceTensorOp_t sum, Value x, Value to) {
  Descriptor& function = part(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  function.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT).set(CUDNN_ATTR_REDUCTION_OPERATOR, sum).finalize();
  Descriptor& made = part(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, function)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x->descriptor)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, to->descriptor);
  operation(made);
  return to;
}

Value Graph::view(Value x, Value to) {
  Descriptor& made = part(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x->descriptor).set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, to->descriptor);
  operation(made);
  return to;
}

Plan Graph::plan() && {
  return Plan(std::move(*this));
}

Plan::Plan(Graph graph)
    : graph_(std::move(graph)),
      kernel_(make_kernel(*graph_.on_, graph_.parts_, graph_.operations_)),
      workspace_bytes_(kernel_.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)) {}

void Plan::run(cudaStream_t stream, const Addresses& addresses, void* workspace) const {
  const CudnnDevice& on = *graph_.on_;
  std::vector<int64_t> ids;
  std::vector<void*> pointers;
  for (const auto& [id, address] : addresses) ids.push_back(id), pointers.push_back(address);
  for (const auto& [id, value] : graph_.numbers_) {
    ids.push_back(id);
    pointers.push_back(const_cast<float*>(&value));  // it is only read
  }
  Descriptor given(on, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  given.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const int64_t>(ids))
      .set_addresses(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers)
      .set_addresses(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, {&workspace, 1})
      .finalize();
  check(on.library, on.library.set_stream(on.handle, stream), "cudnnSetStream", on.index);
  check(on.library, on.library.execute(on.handle, kernel_.handle(), given.handle()), "cudnnBackendExecute", on.index);
}

}  // namespace trainyard::ops::cuda
