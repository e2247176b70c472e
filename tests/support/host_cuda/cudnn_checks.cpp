#include "cudnn_checks.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace host_cudnn {
namespace {

constexpr int64_t kVectorAlignment = 16, kMostHeadDim = 256;

bool is_half(const Tensor& tensor) {
  return tensor.type == CUDNN_DATA_BFLOAT16 || tensor.type == CUDNN_DATA_HALF;
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

}  // namespace

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

void check_operations(const Descriptor& graph) {
  for (const auto* const operation : operations_of(graph))
    require(operation->is_finalized, "an operation is not finalized");
  check_sums(operations_of(graph));
}

int64_t workspace_of(const Descriptor& graph) {
  int64_t most = 0;
  for (const auto* const operation : operations_of(graph))
    if (is_sum_in_memory(product_of(*operation))) return 0;
  for (const auto* const operation : operations_of(graph))
    if (operation->type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
      most = std::max(most, static_cast<int64_t>(Tensor(operation->part(CUDNN_ATTR_OPERATION_RESHAPE_YDESC)).count()));
  return 2 * most;
}

}  // namespace host_cudnn
