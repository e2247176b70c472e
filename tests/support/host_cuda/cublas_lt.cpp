#include <cublasLt.h>

#include <vector>

#include "tensor/float8.h"
#include "tensor/half.h"

// What is opaque holds numbers at places of our own. Wherever the real library would refuse a call, or compute
// something else than was meant, this one refuses it too.
namespace {

using trainyard::BFloat16;
using trainyard::Float16;
using trainyard::Float8E4M3;
using trainyard::Float8E5M2;

enum OperationField { kCompute, kScale };              // after these the attributes, by their number
enum LayoutField { kType, kRows, kColumns, kStride };  // column-major
enum AlgorithmField { kAlignment, kBiasAlignment, kWorkspace, kOuterRows, kOuterColumns };

constexpr uint64_t kSomeWorkspace = 4096;
int g_handle;

/// Bytes; more than 16 are of no use. Of a null address 16.
uint64_t alignment_of(uint64_t address) {
  return std::min<uint64_t>(address & -address, 16) + (address == 0 ? 16 : 0);
}

uint64_t number(const void* value, size_t bytes) {
  uint64_t read = 0;
  std::memcpy(&read, value, bytes);
  return read;
}

bool is_float8(uint64_t type) {
  return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

/// One matrix, read as the operation says.
struct Matrix {
  const std::byte* data;
  uint64_t type, stride;
  bool is_transposed;

  [[nodiscard]] float at(uint64_t row, uint64_t column) const {
    const uint64_t index = is_transposed ? row * stride + column : column * stride + row;
    if (type == CUDA_R_16BF) return float(reinterpret_cast<const BFloat16*>(data)[index]);
    if (type == CUDA_R_16F) return float(reinterpret_cast<const Float16*>(data)[index]);
    if (type == CUDA_R_8F_E4M3) return float(reinterpret_cast<const Float8E4M3*>(data)[index]);
    if (type == CUDA_R_8F_E5M2) return float(reinterpret_cast<const Float8E5M2*>(data)[index]);
    return reinterpret_cast<const float*>(data)[index];
  }
};

/// All of op(matrix), one column behind the other.
std::vector<float> columns_of(const Matrix& matrix, uint64_t rows, uint64_t columns) {
  std::vector<float> values(rows * columns);
  for (uint64_t column = 0; column < columns; ++column)
    for (uint64_t row = 0; row < rows; ++row) values[column * rows + row] = matrix.at(row, column);
  return values;
}

/// Of `count` columns, added in their order.
std::vector<float> weighted_sum(const std::vector<float>& columns, uint64_t rows, const float* weights, uint64_t count) {
  std::vector<float> sums(rows);
  for (uint64_t i = 0; i < count; ++i)
    for (uint64_t row = 0; row < rows; ++row) sums[row] += columns[i * rows + row] * weights[i];
  return sums;
}

void store(void* data, uint64_t type, uint64_t index, float value) {
  if (type == CUDA_R_16BF)
    static_cast<BFloat16*>(data)[index] = BFloat16(value);
  else if (type == CUDA_R_16F)
    static_cast<Float16*>(data)[index] = Float16(value);
  else
    static_cast<float*>(data)[index] = value;
}

struct Sizes {
  uint64_t rows, columns, inner;
};

/// Of op(a) · op(b); an inner size of 0: the call is wrong.
Sizes sizes_of(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
               cublasLtMatrixLayout_t c) {
  const auto size = [&](cublasLtMatrixLayout_t layout, int attribute, bool is_second) {
    return layout->data[(operation->data[attribute] == CUBLAS_OP_T) != is_second ? kColumns : kRows];
  };
  const Sizes sizes{size(a, CUBLASLT_MATMUL_DESC_TRANSA, false), size(b, CUBLASLT_MATMUL_DESC_TRANSB, true),
                    size(a, CUBLASLT_MATMUL_DESC_TRANSA, true)};
  const bool fits = size(b, CUBLASLT_MATMUL_DESC_TRANSB, false) == sizes.inner && c->data[kRows] == sizes.rows &&
                    c->data[kColumns] == sizes.columns;
  return fits ? sizes : Sizes{};
}

/// Of a product whose factors have 8 bits. Scales by rows with an output of float32 may be there on a device; here they
/// are not, so that what is done without them is done too.
bool has_float8_kernel(cublasLtMatmulDesc_t operation, const Sizes& sizes, uint64_t a, uint64_t b, uint64_t out,
                       uint64_t alignment) {
  const uint64_t* const given = operation->data;
  const bool is_tn =
      given[CUBLASLT_MATMUL_DESC_TRANSA] == CUBLAS_OP_T && given[CUBLASLT_MATMUL_DESC_TRANSB] == CUBLAS_OP_N;
  const bool is_mixture =
      !is_float8(a) || !is_float8(b) || (a == CUDA_R_8F_E5M2 && b == CUDA_R_8F_E5M2) || is_float8(out);
  const uint64_t mode = given[CUBLASLT_MATMUL_DESC_A_SCALE_MODE];
  const bool has_mode = mode == given[CUBLASLT_MATMUL_DESC_B_SCALE_MODE] &&
                        (mode == CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F ||
                         (mode == CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F && out != CUDA_R_32F));
  return is_tn && !is_mixture && has_mode && sizes.rows % 16 == 0 && sizes.inner % 16 == 0 && alignment % 16 == 0;
}

/// Whether the operation has no bias, or one that there is a kernel with. Those that widen their factors may have one
/// on a device; here they have none, so that what is done without is done too.
bool has_bias_kernel(cublasLtMatmulDesc_t operation, uint64_t in, uint64_t out) {
  const uint64_t epilogue = operation->data[CUBLASLT_MATMUL_DESC_EPILOGUE];
  if (epilogue == CUBLASLT_EPILOGUE_DEFAULT) return true;
  return epilogue == CUBLASLT_EPILOGUE_BIAS && operation->data[CUBLASLT_MATMUL_DESC_BIAS_POINTER] != 0 && in == out;
}

/// On an H200 cuBLASLt 13.0 refuses scales of either mode that do not begin at a multiple of 16 bytes.
bool are_scales_aligned(const cublasLtMatmulDescOpaque_t& operation) {
  return alignment_of(operation.data[CUBLASLT_MATMUL_DESC_A_SCALE_POINTER]) == 16 &&
         alignment_of(operation.data[CUBLASLT_MATMUL_DESC_B_SCALE_POINTER]) == 16;
}

/// What the operation multiplies row (of A) or column (of B) `index` by.
float scale_of(const cublasLtMatmulDescOpaque_t& operation, int pointer, int mode, uint64_t index) {
  const auto* const scales = reinterpret_cast<const float*>(operation.data[pointer]);
  if (!scales) return 1;
  return scales[operation.data[mode] == CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F ? index : 0];
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = &g_handle;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "an invalid value";
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t operation, size_t bytes,
                                               cublasComputeType_t compute, cudaDataType_t scale) {
  if (bytes != sizeof(*operation)) return CUBLAS_STATUS_INVALID_VALUE;
  *operation = {};
  operation->data[kCompute] = compute, operation->data[kScale] = scale;
  operation->data[CUBLASLT_MATMUL_DESC_EPILOGUE] = CUBLASLT_EPILOGUE_DEFAULT;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  const bool is_pointer = attribute == CUBLASLT_MATMUL_DESC_A_SCALE_POINTER ||
                          attribute == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER ||
                          attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER;
  const size_t of_flag = attribute == CUBLASLT_MATMUL_DESC_FAST_ACCUM ? sizeof(int8_t) : sizeof(int32_t);
  if (bytes != (is_pointer ? sizeof(void*) : of_flag)) return CUBLAS_STATUS_INVALID_VALUE;
  operation->data[attribute] = number(value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t bytes, cudaDataType_t type,
                                                 uint64_t rows, uint64_t columns, int64_t stride) {
  if (bytes != sizeof(*layout) || rows == 0 || columns == 0 || stride < static_cast<int64_t>(rows))
    return CUBLAS_STATUS_INVALID_VALUE;
  *layout = {{uint64_t{type}, rows, columns, static_cast<uint64_t>(stride)}};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, size_t bytes) {
  if (bytes != sizeof(*preference)) return CUBLAS_STATUS_INVALID_VALUE;
  *preference = {};
  for (int matrix = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES; matrix <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES;
       ++matrix)
    preference->data[matrix] = 256;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    size_t bytes) {
  const bool is_long = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
  if (bytes != (is_long ? sizeof(uint64_t) : sizeof(uint32_t))) return CUBLAS_STATUS_INVALID_VALUE;
  preference->data[attribute] = number(value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  *found = 0;
  const Sizes sizes = sizes_of(operation, a, b, c);
  if (handle != &g_handle || wanted < 1 || sizes.inner == 0) return CUBLAS_STATUS_INVALID_VALUE;
  const uint64_t in = a->data[kType], out = c->data[kType];
  const uint64_t* const alignments = preference->data + CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
  const uint64_t alignment = *std::min_element(alignments, alignments + 4);
  const bool is_there = is_float8(in) ? has_float8_kernel(operation, sizes, in, b->data[kType], out, alignment)
                                      : b->data[kType] == in && (out == in || out == CUDA_R_32F);
  if (!is_there || !has_bias_kernel(operation, in, out) || d->data[kType] != out ||
      operation->data[kCompute] != CUBLAS_COMPUTE_32F)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  results[0] = {{{alignment, alignment_of(operation->data[CUBLASLT_MATMUL_DESC_BIAS_POINTER]),
                  std::min(kSomeWorkspace, preference->data[CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES]), sizes.rows,
                  sizes.columns}},
                0,
                CUBLAS_STATUS_SUCCESS};
  results[0].workspaceSize = results[0].algo.data[kWorkspace];
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  const Sizes sizes = sizes_of(operation, a_layout, b_layout, c_layout);
  const uint64_t* const chosen = algorithm->data;
  const bool has_bias = operation->data[CUBLASLT_MATMUL_DESC_EPILOGUE] == CUBLASLT_EPILOGUE_BIAS;
  const uint64_t bias = has_bias ? operation->data[CUBLASLT_MATMUL_DESC_BIAS_POINTER] : 0;
  const auto is_aligned = [&](const void* data) { return reinterpret_cast<uintptr_t>(data) % chosen[kAlignment] == 0; };
  const bool is_right = handle == &g_handle && sizes.inner > 0 && c == d && c_layout == d_layout && is_aligned(a) &&
                        is_aligned(b) && is_aligned(c) && alignment_of(bias) >= chosen[kBiasAlignment] &&
                        are_scales_aligned(*operation) && workspace_bytes >= chosen[kWorkspace] &&
                        chosen[kOuterRows] == sizes.rows && chosen[kOuterColumns] == sizes.columns;
  if (!is_right) return CUBLAS_STATUS_INVALID_VALUE;
  const auto matrix = [&](const void* data, cublasLtMatrixLayout_t layout, int attribute) {
    return Matrix{static_cast<const std::byte*>(data), layout->data[kType], layout->data[kStride],
                  operation->data[attribute] == CUBLAS_OP_T};
  };
  const Matrix left = matrix(a, a_layout, CUBLASLT_MATMUL_DESC_TRANSA),
               right = matrix(b, b_layout, CUBLASLT_MATMUL_DESC_TRANSB);
  const Matrix before{static_cast<const std::byte*>(c), c_layout->data[kType], c_layout->data[kStride], false};
  const float of_product = *static_cast<const float*>(alpha), of_before = *static_cast<const float*>(beta);
  // Nothing that the caller may drop is looked at when this is done.
  const auto work = [=, scratch = chosen[kWorkspace], operation = *operation] {
    std::memset(workspace, 0xCB, scratch);
    const std::vector<float> factors = columns_of(left, sizes.rows, sizes.inner),
                             others = columns_of(right, sizes.inner, sizes.columns);
    for (uint64_t column = 0; column < sizes.columns; ++column) {
      std::vector<float> sums = weighted_sum(factors, sizes.rows, others.data() + column * sizes.inner, sizes.inner);
      for (uint64_t row = 0; row < sizes.rows; ++row) {
        float& sum = sums[row];
        sum *= of_product *
               scale_of(operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, row) *
               scale_of(operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, column);
        if (bias != 0) sum += Matrix{reinterpret_cast<const std::byte*>(bias), before.type, 0, false}.at(row, 0);
        if (of_before != 0) sum += of_before * before.at(row, column);  // else c is not read, and may hold anything
        store(d, before.type, column * before.stride + row, sum);
      }
    }
    return cudaSuccess;
  };
  return host_cuda::submit(stream, work) == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
