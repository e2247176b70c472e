#include <cudnn.h>

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tensor/half.h"

// Graphs of operations, computed one after another over whole tensors, in double where cuDNN has float32, rounded where
// a tensor is of 16 bits. Wherever the real library would refuse a call, or compute something else than was meant, this
// one refuses it too, and what that leaves unsaid is not a number here.
namespace {

using trainyard::BFloat16;
using trainyard::Float16;

constexpr size_t kElements = 4;  // of sizes and strides: [batch, heads, rows, columns]
constexpr int64_t kVectorAlignment = 16, kMostHeadDim = 256;
using Four = std::array<int64_t, kElements>;

thread_local std::string t_last_error;
thread_local cudaStream_t t_stream = nullptr;

/// What a call does not take; the status that it returns.
struct Refusal {
  cudnnStatus_t status;
  std::string why;
};
[[noreturn]] void wrong(const std::string& why) {
  throw Refusal{CUDNN_STATUS_BAD_PARAM, why};
}
void require(bool is_right, const std::string& why) {
  if (!is_right) wrong(why);
}
void require_supported(bool is_supported, const std::string& why) {
  if (!is_supported) throw Refusal{CUDNN_STATUS_NOT_SUPPORTED, why};
}

size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return sizeof(int);  // enumerators
  }
}

/// By the numbers that cuDNN gives its attributes.
cudnnBackendAttributeType_t type_of(cudnnBackendAttributeName_t name) {
  switch (name) {
    case CUDNN_ATTR_POINTWISE_MODE:
      return CUDNN_TYPE_POINTWISE_MODE;
    case CUDNN_ATTR_REDUCTION_OPERATOR:
      return CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
    case CUDNN_ATTR_POINTWISE_MATH_PREC:
    case CUDNN_ATTR_MATMUL_COMP_TYPE:
    case CUDNN_ATTR_REDUCTION_COMP_TYPE:
    case CUDNN_ATTR_TENSOR_DATA_TYPE:
      return CUDNN_TYPE_DATA_TYPE;
    case CUDNN_ATTR_POINTWISE_AXIS:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
    case CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT:
    case CUDNN_ATTR_TENSOR_DIMENSIONS:
    case CUDNN_ATTR_TENSOR_STRIDES:
    case CUDNN_ATTR_TENSOR_UNIQUE_ID:
    case CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS:
      return CUDNN_TYPE_INT64;
    case CUDNN_ATTR_TENSOR_IS_VIRTUAL:
    case CUDNN_ATTR_TENSOR_IS_BY_VALUE:
      return CUDNN_TYPE_BOOLEAN;
    case CUDNN_ATTR_ENGINEHEUR_MODE:
      return CUDNN_TYPE_HEUR_MODE;
    case CUDNN_ATTR_EXECUTION_PLAN_HANDLE:
    case CUDNN_ATTR_OPERATIONGRAPH_HANDLE:
      return CUDNN_TYPE_HANDLE;
    case CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS:
    case CUDNN_ATTR_VARIANT_PACK_WORKSPACE:
      return CUDNN_TYPE_VOID_PTR;
    default:
      return CUDNN_TYPE_BACKEND_DESCRIPTOR;
  }
}

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool is_finalized = false;
  std::map<cudnnBackendAttributeName_t, std::vector<std::byte>> attributes = {};
  const Descriptor* graph = nullptr;  ///< of a proposal and of a plan

  [[nodiscard]] bool has(cudnnBackendAttributeName_t name) const { return attributes.contains(name); }

  template <typename T>
  [[nodiscard]] std::vector<T> all(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    require(found != attributes.end(), "attribute " + std::to_string(name) + " is not set");
    std::vector<T> values(found->second.size() / sizeof(T));
    std::memcpy(values.data(), found->second.data(), found->second.size());
    return values;
  }
  template <typename T>
  [[nodiscard]] T one(cudnnBackendAttributeName_t name) const {
    T value;
    const std::vector<std::byte>& bytes = attributes.at(name);
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  [[nodiscard]] const Descriptor& part(cudnnBackendAttributeName_t name) const {
    require(has(name), "descriptor " + std::to_string(name) + " is not set");
    const auto* const found = one<const Descriptor*>(name);
    require(found && found->is_finalized, "descriptor " + std::to_string(name) + " is not finalized");
    return *found;
  }
};

int g_handle;
bool g_refuses_backward = false;

// --- Tensors

struct Tensor {
  int64_t id;
  cudnnDataType_t type;
  Four sizes, strides;
  int64_t alignment;
  bool is_virtual, is_number;

  explicit Tensor(const Descriptor& from)
      : id(from.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
        type(from.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        sizes(from.one<Four>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides(from.one<Four>(CUDNN_ATTR_TENSOR_STRIDES)),
        alignment(from.one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)),
        is_virtual(from.has(CUDNN_ATTR_TENSOR_IS_VIRTUAL)),
        is_number(from.has(CUDNN_ATTR_TENSOR_IS_BY_VALUE)) {}

  [[nodiscard]] size_t count() const { return static_cast<size_t>(sizes[0] * sizes[1] * sizes[2] * sizes[3]); }

  /// Where the element lies, from the first.
  [[nodiscard]] int64_t place(const Four& at) const {
    int64_t sum = 0;
    for (size_t i = 0; i < kElements; ++i) sum += at[i] * strides[i];
    return sum;
  }
};

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

bool divides(const Tensor& small, const Four& sizes) {
  for (size_t i = 0; i < kElements; ++i)
    if (sizes[i] % small.sizes[i] != 0) return false;
  return true;
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

// --- Operations

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

// --- What finalize() looks at

bool is_half(const Tensor& tensor) {
  return tensor.type == CUDNN_DATA_BFLOAT16 || tensor.type == CUDNN_DATA_HALF;
}

void check_tensor(const Descriptor& from) {
  require(from.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS).size() == kElements &&
              from.all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES).size() == kElements,
          "a tensor takes four sizes and four strides");
  require(from.all<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID).size() == 1 &&
              from.all<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT).size() == 1 &&
              from.all<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE).size() == 1,
          "a tensor takes an id, a type and an alignment");
  const Tensor tensor(from);
  for (const int64_t size : tensor.sizes) require(size > 0, "a size that is not above 0");
  for (const int64_t stride : tensor.strides) require(stride > 0, "a stride that is not above 0");
  require(!tensor.is_virtual || !tensor.is_number, "a number is no temporary tensor");
}

/// Of a factor in memory: 16 bits, vectors side by side, whole loads.
void check_factor(const Tensor& tensor) {
  if (tensor.is_virtual) return;
  require_supported(is_half(tensor), "factors have 16 bits");
  require_supported(tensor.alignment == kVectorAlignment, "a factor is not aligned");
  const size_t vector = tensor.strides[3] == 1 ? 3 : 2;
  require_supported(tensor.strides[vector] == 1, "the elements of a head's vector are not side by side");
  require_supported(tensor.sizes[vector] % 8 == 0, "a head size is not a multiple of 8");
  require_supported(tensor.sizes[vector] <= kMostHeadDim, "a head size is above 256");
  for (size_t i = 0; i < kElements; ++i)
    require_supported(i == vector || tensor.strides[i] * 2 % kVectorAlignment == 0, "a stride is not aligned");
}

void check_matmul(const Descriptor& operation) {
  require(operation.part(CUDNN_ATTR_OPERATION_MATMUL_DESC).one<cudnnDataType_t>(CUDNN_ATTR_MATMUL_COMP_TYPE) ==
              CUDNN_DATA_FLOAT,
          "products are summed in float32");
  const Tensor a(operation.part(CUDNN_ATTR_OPERATION_MATMUL_ADESC));
  const Tensor b(operation.part(CUDNN_ATTR_OPERATION_MATMUL_BDESC));
  const Tensor c(operation.part(CUDNN_ATTR_OPERATION_MATMUL_CDESC));
  check_factor(a), check_factor(b);
  const bool fits = a.sizes[3] == b.sizes[2] && c.sizes[2] == a.sizes[2] && c.sizes[3] == b.sizes[3] &&
                    a.sizes[0] == b.sizes[0] && a.sizes[0] == c.sizes[0] && a.sizes[1] == c.sizes[1] &&
                    c.sizes[1] % b.sizes[1] == 0;
  require(fits, "the sizes of a product do not fit");
}

void check_operation(const Descriptor& operation) {
  if (operation.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) return check_matmul(operation);
  if (operation.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
    const Tensor x(operation.part(CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
    return require(x.count() == Tensor(operation.part(CUDNN_ATTR_OPERATION_RESHAPE_YDESC)).count(),
                   "a view has as many elements as what it is of");
  }
  if (operation.type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
    const Tensor x(operation.part(CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
    return require(divides(Tensor(operation.part(CUDNN_ATTR_OPERATION_REDUCTION_YDESC)), x.sizes),
                   "the sizes of a reduction do not fit");
  }
  const Tensor y(operation.part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
  for (const auto name : {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                          CUDNN_ATTR_OPERATION_POINTWISE_TDESC})
    if (operation.has(name))
      require(divides(Tensor(operation.part(name)), y.sizes), "the sizes of a pointwise operation do not fit");
}

std::vector<const Descriptor*> operations_of(const Descriptor& graph) {
  return graph.all<const Descriptor*>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
}

std::optional<Tensor> product_of(const Descriptor& operation) {
  if (operation.type != CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) return {};
  return Tensor(operation.part(CUDNN_ATTR_OPERATION_MATMUL_CDESC));
}

/// What the backward that need not be deterministic adds up in memory: dq in float32.
bool is_sum_in_memory(const std::optional<Tensor>& product) {
  return product && !product->is_virtual && product->type == CUDNN_DATA_FLOAT;
}

bool is_identity(const Descriptor& operation) {
  return operation.type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR &&
         operation.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
                 .one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE) == CUDNN_POINTWISE_IDENTITY;
}

/// The sums are rounded to 16 bits, and nothing else is done, by the operation after.
void check_rounding(const Tensor& sums, const Descriptor& after) {
  require_supported(is_identity(after), "sums in memory are not rounded");
  const Tensor from(after.part(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
  const Tensor to(after.part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
  require_supported(from.id == sums.id && to.sizes == sums.sizes && is_half(to) && !to.is_virtual,
                    "sums in memory are rounded to something else");
  const auto [rows, heads, queries, width] = sums.sizes;
  require_supported(sums.strides == Four{heads * queries * width, queries * width, width, 1}, "sums are not packed");
}

/// Of products in memory dq alone may have float32, as the last of a backward that has no gradient of a bias.
void check_sums(const std::vector<const Descriptor*>& operations) {
  for (size_t i = 0; i < operations.size(); ++i) {
    const auto product = product_of(*operations[i]);
    const bool is_after_sums = i > 0 && is_sum_in_memory(product_of(*operations[i - 1]));
    require_supported(!is_identity(*operations[i]) || is_after_sums, "an identity of what is no sum in memory");
    if (!is_sum_in_memory(product)) continue;
    require_supported(i + 2 == operations.size(), "sums in memory are not what a graph ends with");
    check_rounding(*product, *operations[i + 1]);
    for (const auto* const other : operations) {
      if (other->type != CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) continue;
      const Tensor y(other->part(CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
      const bool is_of_bias = !y.is_virtual && y.strides[1] == y.sizes[2] * y.sizes[3] && y.sizes[0] == 1;
      require_supported(!is_of_bias, "a bias's gradient needs the scores' in memory");
    }
  }
}

void check_graph(const Descriptor& graph) {
  require(graph.one<int*>(CUDNN_ATTR_OPERATIONGRAPH_HANDLE) == &g_handle, "another handle");
  for (const auto* const operation : operations_of(graph))
    require(operation->is_finalized, "an operation is not finalized");
  check_sums(operations_of(graph));
}

/// A matrix of each head, as the real library's deterministic backward has one; 0 of forward and of the other backward.
int64_t workspace_of(const Descriptor& graph) {
  int64_t most = 0;
  for (const auto* const operation : operations_of(graph))
    if (is_sum_in_memory(product_of(*operation))) return 0;
  for (const auto* const operation : operations_of(graph))
    if (operation->type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
      most = std::max(most, static_cast<int64_t>(Tensor(operation->part(CUDNN_ATTR_OPERATION_RESHAPE_YDESC)).count()));
  return 2 * most;
}

void finalize(Descriptor& made) {
  switch (made.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return check_tensor(made);
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return check_operation(made);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return check_graph(made);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      require(made.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_A, "another mode");
      made.graph = &made.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      return;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      require(made.one<int*>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) == &g_handle, "another handle");
      made.graph = made.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).graph;
      require_supported(!g_refuses_backward || workspace_of(*made.graph) == 0, "no kernel of it is deterministic");
      return;
    default:
      return;
  }
}

void execute(const Descriptor& plan, const Descriptor& pack) {
  require(plan.is_finalized && pack.is_finalized, "a plan or its addresses are not finalized");
  const auto ids = pack.all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  require(ids.size() == pointers.size(), "as many ids as addresses");
  if (const int64_t bytes = workspace_of(*plan.graph))
    std::memset(pack.one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE), 0xCB, static_cast<size_t>(bytes));
  std::map<int64_t, void*> addresses;
  for (size_t i = 0; i < ids.size(); ++i) addresses[ids[i]] = pointers[i];
  Run run(addresses);
  for (const auto* const operation : operations_of(*plan.graph)) run_operation(*operation, run);
}

template <typename Body>
cudnnStatus_t guarded(const Body& body) {
  try {
    body();
    return CUDNN_STATUS_SUCCESS;
  } catch (const Refusal& refusal) {
    t_last_error = refusal.why;
    return refusal.status;
  }
}

Descriptor& known(cudnnBackendDescriptor_t descriptor) {
  return *static_cast<Descriptor*>(descriptor);
}

}  // namespace

size_t cudnnGetVersion() {
  return 91900;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  if (status == CUDNN_STATUS_BAD_PARAM) return "bad parameter";
  return status == CUDNN_STATUS_NOT_SUPPORTED ? "not supported" : "an error of the test";
}

void cudnnGetLastErrorString(char* message, size_t most) {
  message[t_last_error.copy(message, most - 1)] = '\0';
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = reinterpret_cast<cudnnHandle_t>(&g_handle);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t stream) {
  t_stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  *descriptor = new Descriptor{.type = type};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Descriptor*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  return guarded([&] {
    require(!known(descriptor).is_finalized, "an attribute is set after the end");
    require(type == type_of(name), "attribute " + std::to_string(name) + " has another type");
    const auto* const from = static_cast<const std::byte*>(values);
    known(descriptor).attributes[name].assign(from, from + static_cast<size_t>(count) * bytes_of(type));
  });
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t wanted, int64_t* count, void* values) {
  return guarded([&] {
    const Descriptor& from = known(descriptor);
    require(from.is_finalized && type == type_of(name) && wanted > 0, "what is not there is asked for");
    *count = 1;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
      *static_cast<int64_t*>(values) = workspace_of(*from.graph);
      return;
    }
    Descriptor& proposal = *static_cast<Descriptor**>(values)[0];
    require(proposal.type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "proposals go into engine configurations");
    proposal.graph = from.graph;
    proposal.is_finalized = true;
  });
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return guarded([&] {
    finalize(known(descriptor));
    known(descriptor).is_finalized = true;
  });
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  return guarded([&] {
    require(reinterpret_cast<int*>(handle) == &g_handle, "another handle");
    const auto work = [&plan = known(plan), pack = known(pack)] {
      const cudnnStatus_t status = guarded([&] { execute(plan, pack); });
      return status == CUDNN_STATUS_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
    };
    if (host_cuda::submit(t_stream, work) != cudaSuccess) throw Refusal{CUDNN_STATUS_BAD_PARAM, t_last_error};
  });
}

void host_cudnn_refuse_backward(bool refuse) {
  g_refuses_backward = refuse;
}
