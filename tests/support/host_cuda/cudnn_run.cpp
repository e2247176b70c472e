#include "cudnn_run.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tensor/half.h"

namespace host_cudnn {
namespace {

using trainyard::BFloat16;
using trainyard::Float16;

/// Elements by their indices, whatever the strides.
using Values = std::vector<double>;

template <typename Body>
void for_each(const Four& sizes, const Body& body) {
  Four at;
  size_t i = 0;
  for (at[0] = 0; at[0] < sizes[0]; ++at[0])
    for (at[1] = 0; at[1] < sizes[1]; ++at[1])
      for (at[2] = 0; at[2] < sizes[2]; ++at[2])
        for (at[3] = 0; at[3] < sizes[3]; ++at[3]) body(at, i++);
}

/// The element of a smaller tensor that goes with `at` of a larger one: the same, or that of the group.
double of(const Tensor& tensor, const Values& values, const Four& at, const Four& sizes) {
  int64_t index = 0;
  for (size_t i = 0; i < kElements; ++i) index = index * tensor.sizes[i] + at[i] / (sizes[i] / tensor.sizes[i]);
  return values[static_cast<size_t>(index)];
}

double rounded(double value, cudnnDataType_t type) {
  if (type == CUDNN_DATA_BFLOAT16) return static_cast<double>(float(BFloat16(static_cast<float>(value))));
  if (type == CUDNN_DATA_HALF) return static_cast<double>(float(Float16(static_cast<float>(value))));
  return static_cast<double>(static_cast<float>(value));
}

double load(const void* from, cudnnDataType_t type, int64_t at) {
  if (type == CUDNN_DATA_BFLOAT16) return static_cast<double>(float(static_cast<const BFloat16*>(from)[at]));
  if (type == CUDNN_DATA_HALF) return static_cast<double>(float(static_cast<const Float16*>(from)[at]));
  if (type == CUDNN_DATA_INT32) return static_cast<const int32_t*>(from)[at];
  return static_cast<double>(static_cast<const float*>(from)[at]);
}

void store(void* to, cudnnDataType_t type, int64_t at, double value) {
  const auto single = static_cast<float>(value);
  if (type == CUDNN_DATA_BFLOAT16)
    static_cast<BFloat16*>(to)[at] = BFloat16(single);
  else if (type == CUDNN_DATA_HALF)
    static_cast<Float16*>(to)[at] = Float16(single);
  else
    static_cast<float*>(to)[at] = single;
}

/// What is known while a graph runs.
class Run {
 public:
  explicit Run(const std::map<int64_t, void*>& addresses) : addresses_(addresses) {}

  const Values& read(const Tensor& tensor) {
    if (const auto found = known_.find(tensor.id); found != known_.end() && tensor.is_virtual) return found->second;
    require(!tensor.is_virtual, "a temporary tensor is read before it is made");
    Values values(tensor.count());
    const void* const from = address(tensor);
    for_each(tensor.sizes, [&](const Four& at, size_t i) { values[i] = load(from, tensor.type, tensor.place(at)); });
    return known_[tensor.id] = std::move(values);
  }

  void write(const Tensor& tensor, Values values) {
    for (double& value : values) value = rounded(value, tensor.type);
    if (!tensor.is_virtual) {
      void* const to = address(tensor);
      for_each(tensor.sizes, [&](const Four& at, size_t i) { store(to, tensor.type, tensor.place(at), values[i]); });
    }
    known_[tensor.id] = std::move(values);
  }

 private:
  [[nodiscard]] void* address(const Tensor& tensor) const {
    const auto found = addresses_.find(tensor.id);
    require(found != addresses_.end() && found->second, "tensor " + std::to_string(tensor.id) + " has no address");
    const bool is_aligned = reinterpret_cast<uintptr_t>(found->second) % static_cast<uintptr_t>(tensor.alignment) == 0;
    require(tensor.is_number || is_aligned, "tensor " + std::to_string(tensor.id) + " is not aligned");
    return found->second;
  }

  const std::map<int64_t, void*>& addresses_;
  std::map<int64_t, Values> known_;
};

double pointwise(cudnnPointwiseMode_t mode, double x, double b, bool where) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    case CUDNN_POINTWISE_IDENTITY:
      return x;
    case CUDNN_POINTWISE_CMP_GT:
      return x > b;
    case CUDNN_POINTWISE_CMP_GE:
      return x >= b;
    case CUDNN_POINTWISE_CMP_LT:
      return x < b;
    case CUDNN_POINTWISE_LOGICAL_AND:
      return x != 0 && b != 0;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return where ? x : b;
    default:
      wrong("an unknown pointwise mode");
  }
}

void run_pointwise(const Descriptor& operation, Run& run) {
  const Descriptor& function = operation.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  const auto mode = function.one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
  const Tensor x(operation.part(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
  const Tensor y(operation.part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
  Values made(y.count());
  if (mode == CUDNN_POINTWISE_GEN_INDEX) {
    const auto axis = static_cast<size_t>(function.one<int64_t>(CUDNN_ATTR_POINTWISE_AXIS));
    for_each(y.sizes, [&](const Four& at, size_t i) { made[i] = static_cast<double>(at[axis]); });
    return run.write(y, std::move(made));
  }
  const auto operand = [&](cudnnBackendAttributeName_t name) {
    return operation.has(name) ? Tensor(operation.part(name)) : x;
  };
  const Tensor b = operand(CUDNN_ATTR_OPERATION_POINTWISE_BDESC), t = operand(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
  const Values in_x = run.read(x), in_b = run.read(b), in_t = run.read(t);
  for_each(y.sizes, [&](const Four& at, size_t i) {
    made[i] = pointwise(mode, of(x, in_x, at, y.sizes), of(b, in_b, at, y.sizes), of(t, in_t, at, y.sizes) != 0);
  });
  run.write(y, std::move(made));
}

/// How much of a size counts in a batch row.
Values counted(const Descriptor& operation, cudnnBackendAttributeName_t name, int64_t batch, int64_t size, Run& run) {
  if (!operation.has(name)) return Values(static_cast<size_t>(batch), static_cast<double>(size));
  return run.read(Tensor(operation.part(name)));
}

void run_matmul(const Descriptor& operation, Run& run) {
  const Tensor a(operation.part(CUDNN_ATTR_OPERATION_MATMUL_ADESC));
  const Tensor b(operation.part(CUDNN_ATTR_OPERATION_MATMUL_BDESC));
  const Tensor c(operation.part(CUDNN_ATTR_OPERATION_MATMUL_CDESC));
  const int64_t inner = a.sizes[3];
  const Values rows = counted(operation, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, c.sizes[0], c.sizes[2], run);
  const Values columns =
      counted(operation, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, c.sizes[0], c.sizes[3], run);
  const Values inners = counted(operation, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, c.sizes[0], inner, run);
  const Values in_a = run.read(a), in_b = run.read(b);
  Values made(c.count());
  for_each(c.sizes, [&](const Four& at, size_t i) {
    const auto row = static_cast<size_t>(at[0]);
    if (static_cast<double>(at[2]) >= rows[row] || static_cast<double>(at[3]) >= columns[row]) {
      made[i] = c.is_virtual ? 0 : std::nan("");  // of what it leaves in memory there, cuDNN says nothing
      return;
    }
    const int64_t group = c.sizes[1] / b.sizes[1];
    const int64_t left = ((at[0] * a.sizes[1] + at[1]) * a.sizes[2] + at[2]) * inner;
    const int64_t right = (at[0] * b.sizes[1] + at[1] / group) * inner * b.sizes[3] + at[3];
    double sum = 0;
    for (int64_t k = 0; k < inner && static_cast<double>(k) < inners[row]; ++k)
      sum += in_a[static_cast<size_t>(left + k)] * in_b[static_cast<size_t>(right + k * b.sizes[3])];
    made[i] = sum;
  });
  run.write(c, std::move(made));
}

void run_reduction(const Descriptor& operation, Run& run) {
  const Tensor x(operation.part(CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
  const Tensor y(operation.part(CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
  const bool is_sum =
      operation.part(CUDNN_ATTR_OPERATION_REDUCTION_DESC).one<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR) ==
      CUDNN_REDUCE_TENSOR_ADD;
  const Values in = run.read(x);
  Values made(y.count(), is_sum ? 0 : -INFINITY);
  for_each(x.sizes, [&](const Four& at, size_t i) {
    int64_t to = 0;
    for (size_t k = 0; k < kElements; ++k) to = to * y.sizes[k] + at[k] / (x.sizes[k] / y.sizes[k]);
    double& result = made[static_cast<size_t>(to)];
    result = is_sum ? result + in[i] : std::max(result, in[i]);
  });
  run.write(y, std::move(made));
}

void run_view(const Descriptor& operation, Run& run) {
  const Tensor x(operation.part(CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
  const Tensor y(operation.part(CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
  std::map<int64_t, double> memory;
  const Values in = run.read(x);
  for_each(x.sizes, [&](const Four& at, size_t i) { memory[x.place(at)] = in[i]; });
  Values made(y.count());
  for_each(y.sizes, [&](const Four& at, size_t i) { made[i] = memory.at(y.place(at)); });
  run.write(y, std::move(made));
}

void run_operation(const Descriptor& operation, Run& run) {
  switch (operation.type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return run_pointwise(operation, run);
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return run_matmul(operation, run);
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return run_reduction(operation, run);
    default:
      return run_view(operation, run);
  }
}

}  // namespace

void run_graph(const Descriptor& graph, const std::map<int64_t, void*>& addresses) {
  Run run(addresses);
  for (const auto* const operation : operations_of(graph)) run_operation(*operation, run);
}

}  // namespace host_cudnn
