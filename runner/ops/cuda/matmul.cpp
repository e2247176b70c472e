#include <algorithm>
#include <bit>
#include <compare>
#include <map>
#include <optional>
#include <utility>

#include "common/mutex.h"
#include "ops/cuda/cublas_lt.h"
#include "ops/cuda/float8.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/matmul_scratch.h"
#include "tensor/by_device.h"
#include "tensor/cuda/check.h"

// cuBLASLt's matrices are column-major: there our row-major c = a · b is the transposed cᵀ = bᵀ · aᵀ, so b comes first.
namespace trainyard::ops::cuda {
namespace {

constexpr size_t kMostPlans = 512;

/// A matrix as it is stored. Which way it is read is `transpose`; of c that is No.
struct Stored {
  DType dtype;
  int64_t rows, columns;
  Transpose transpose;
  auto operator<=>(const Stored&) const = default;

  explicit Stored(const Tensor& tensor, Transpose read = Transpose::No)
      : dtype(tensor.dtype()), rows(tensor.size(0)), columns(tensor.size(1)), transpose(read) {}
};

/// What the product of two factors in 8 bits is multiplied by.
enum class Scales : uint8_t { None, OfMatrices, ByRows };

/// 1 over the scale of each factor, on the device.
struct Scaling {
  Scales scales = Scales::None;
  const std::byte *a = nullptr, *b = nullptr;
  bool fast_sums = false;
};

/// What lies on the device beside the matrices, elsewhere with every call.
struct Vectors {
  Scaling scaling;
  const std::byte* bias;  ///< of c's dtype; null: none
};

/// All that the choice of a kernel depends on.
struct Product {
  Stored a, b, c;
  Scales scales;
  bool fast_sums;
  uint32_t alignment;       ///< bytes, of the least aligned of the three
  uint32_t bias_alignment;  ///< bytes; 0: no bias
  auto operator<=>(const Product&) const = default;
};

struct Plan {
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t a, b, c;
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace;  ///< bytes
};

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::BFloat16:
      return CUDA_R_16BF;
    case DType::Float16:
      return CUDA_R_16F;
    case DType::Float8E4M3:
      return CUDA_R_8F_E4M3;
    case DType::Float8E5M2:
      return CUDA_R_8F_E5M2;
    default:
      return CUDA_R_32F;
  }
}

/// The alignment of the least aligned address, in bytes.
uint32_t alignment_of(std::initializer_list<const std::byte*> addresses) {
  constexpr uintptr_t kMost = 256;  // more is of no use to cuBLASLt
  uintptr_t bits = kMost;
  for (const std::byte* const address : addresses) bits |= reinterpret_cast<uintptr_t>(address);
  return uint32_t{1} << static_cast<uint32_t>(std::countr_zero(bits));
}

/// The products of one device. Any thread may run them.
class Products {
 public:
  explicit Products(int device) : device_(device) {
    trainyard::cuda::use(device_);
    check(library_.create(&handle_), "cublasLtCreate", device_);
  }

  /// False, and nothing is done, where cuBLASLt has no kernel for it.
  [[nodiscard]] bool run(const Tensor& a, const Tensor& b, Tensor& c, const MatmulOptions& options,
                         const Scaling& scaling = {}) {
    trainyard::cuda::use(device_);
    const Vectors vectors{scaling, options.bias.defined() ? options.bias.raw() : nullptr};
    std::optional<Plan> plan =
        plan_of({Stored(a, options.a), Stored(b, options.b), Stored(c), scaling.scales, scaling.fast_sums,
                 alignment_of({a.raw(), b.raw(), c.raw()}), vectors.bias ? alignment_of({vectors.bias}) : 0},
                vectors);
    if (!plan) return false;
    set_vectors(*plan, vectors);
    const float alpha = 1, beta = options.accumulate ? 1 : 0;
    Tensor workspace = Tensor::empty({static_cast<int64_t>(plan->workspace)}, DType::UInt8, c.device());
    check(library_.matmul(handle_, &plan->operation, &alpha, b.raw(), &plan->b, a.raw(), &plan->a, &beta, c.raw(),
                          &plan->c, c.raw(), &plan->c, &plan->algorithm, workspace.raw(), plan->workspace,
                          static_cast<cudaStream_t>(current_stream(c.device()).handle)),
          "cublasLtMatmul", device_);
    return true;
  }

 private:
  /// Steps repeat their shapes, so a plan is made once; where batches come in ever new shapes, those of old ones go.
  /// None: there is no kernel. `vectors`: any of the product's kind.
  std::optional<Plan> plan_of(const Product& product, const Vectors& vectors) {
    const MutexLock lock(mutex_);
    if (const auto found = plans_.find(product); found != plans_.end()) return found->second;
    if (plans_.size() == kMostPlans) plans_.clear();
    return plans_.emplace(product, make_plan(product, vectors)).first->second;
  }

  [[nodiscard]] std::optional<Plan> make_plan(const Product& product, const Vectors& vectors) const {
    Plan plan{};
    // float32 is multiplied as such, not as TF32: the reference numbers are held to 1e-5.
    check(library_.init_operation(&plan.operation, sizeof(plan.operation), CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "cublasLtMatmulDescInit", device_);
    set_transpose(plan, CUBLASLT_MATMUL_DESC_TRANSA, product.b);
    set_transpose(plan, CUBLASLT_MATMUL_DESC_TRANSB, product.a);
    set_vectors(plan, vectors);
    set_layout(plan.a, product.a);
    set_layout(plan.b, product.b);
    set_layout(plan.c, product.c);
    if (!choose_algorithm(plan, product.alignment)) return std::nullopt;
    return plan;
  }

  void set_operation(Plan& plan, cublasLtMatmulDescAttributes_t attribute, auto value) const {
    check(library_.set_operation(&plan.operation, attribute, &value, sizeof(value)), "cublasLtMatmulDescSetAttribute",
          device_);
  }

  void set_transpose(Plan& plan, cublasLtMatmulDescAttributes_t attribute, const Stored& matrix) const {
    set_operation(plan, attribute, matrix.transpose == Transpose::Yes ? CUBLAS_OP_T : CUBLAS_OP_N);
  }

  /// cuBLASLt's heuristic reads from the bias's address how it is aligned, so its plan has one too.
  void set_vectors(Plan& plan, const Vectors& vectors) const {
    set_scaling(plan, vectors.scaling);
    if (!vectors.bias) return;
    set_operation(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{CUBLASLT_EPILOGUE_BIAS});
    set_operation(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(vectors.bias));
  }

  void set_scaling(Plan& plan, const Scaling& scaling) const {
    if (scaling.scales == Scales::None) return;
    const auto mode = static_cast<int32_t>(scaling.scales == Scales::ByRows ? CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F
                                                                            : CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F);
    set_operation(plan, CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<int8_t>(scaling.fast_sums));
    set_operation(plan, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode);
    set_operation(plan, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode);
    set_operation(plan, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(scaling.b));
    set_operation(plan, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<const void*>(scaling.a));
  }

  void set_layout(cublasLtMatrixLayoutOpaque_t& layout, const Stored& matrix) const {
    check(library_.init_layout(&layout, sizeof(layout), type_of(matrix.dtype), static_cast<uint64_t>(matrix.columns),
                               static_cast<uint64_t>(matrix.rows), matrix.columns),
          "cublasLtMatrixLayoutInit", device_);
  }

  /// False: there is none.
  [[nodiscard]] bool choose_algorithm(Plan& plan, uint32_t alignment) const {
    cublasLtMatmulPreferenceOpaque_t preference{};
    check(library_.init_preference(&preference, sizeof(preference)), "cublasLtMatmulPreferenceInit", device_);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      check(library_.set_preference(&preference, attribute, &value, sizeof(value)),
            "cublasLtMatmulPreferenceSetAttribute", device_);
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kMostProductWorkspace});
    // Where k is split, the parts stay float32 until they are added, in a fixed order.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    for (const auto matrix : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                              CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(matrix, alignment);
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    const cublasStatus_t status = library_.find_algorithms(handle_, &plan.operation, &plan.b, &plan.a, &plan.c, &plan.c,
                                                           &preference, 1, &best, &found);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
    check(status, "cublasLtMatmulAlgoGetHeuristic", device_);
    plan.algorithm = best.algo;
    plan.workspace = best.workspaceSize;
    return found > 0 && best.state == CUBLAS_STATUS_SUCCESS;
  }

  const CublasLt& library_ = cublas_lt();
  int device_;
  cublasLtHandle_t handle_ = nullptr;  // it stays until the process ends, when the driver may be gone already
  Mutex mutex_;
  std::map<Product, std::optional<Plan>> plans_ GUARDED_BY(mutex_);
};

Products& products_of(Device device) {
  static ByDevice<Products> all;
  return all.of(device, device.index);
}

/// A product whose result is float32.
void run_to_float(const Tensor& a, const Tensor& b, Tensor& c, MatmulOptions options) {
  Products& products = products_of(c.device());
  if (products.run(a, b, c, options)) return;
  const Tensor bias = std::exchange(options.bias, {});
  if (!bias.defined() || !products.run(a, b, c, options))
    check(CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmulAlgoGetHeuristic", c.device().index);
  add_bias(c, bias);
}

Tensor in_float(const Tensor& tensor) {
  if (!tensor.defined() || tensor.dtype() == DType::Float32) return tensor;
  Tensor converted = Tensor::empty(tensor.shape(), DType::Float32, tensor.device());
  cast(tensor, converted);
  return converted;
}

/// `scale` where cuBLASLt reads it from: a multiple of 16 bytes, whatever the mode. Scales that ranks gathered in a row
/// begin elsewhere.
Tensor aligned(const Tensor& scale) {
  if (alignment_of({scale.raw()}) >= 16) return scale;
  Tensor moved = empty_like(scale);
  copy(scale, moved);
  return moved;
}

/// An empty sum.
void add_nothing(Tensor& c, const MatmulOptions& options) {
  if (!options.accumulate) set_zero(c);
  if (options.bias.defined()) add_bias(c, options.bias);
}

}  // namespace

void matmul(const Tensor& a, const Tensor& b, Tensor& c, MatmulOptions options) {
  if (c.count() == 0) return;
  if (a.count() == 0) return add_nothing(c, options);
  if (c.dtype() == DType::Float32) return run_to_float(a, b, c, options);
  if (!goes_by_float(a, c) && products_of(c.device()).run(a, b, c, options)) return;
  Tensor sums = float_product(c).on(c.device());
  run_to_float(a, b, sums, {.a = options.a, .b = options.b, .bias = in_float(options.bias)});
  if (options.accumulate)
    add_to(c, sums);
  else
    cast(sums, c);
}

/// The order that tensor cores want of 8 bits (TN): both factors lie along the sums. Scales by rows are for compute
/// capability 9.0 alone, and c may lie less aligned than is needed: then the sums go by way of float32.
void float8_matmul(const Float8Matrix& a, const Float8Matrix& b, Tensor& c, Float8MatmulOptions wanted) {
  if (c.count() == 0) return;
  MatmulOptions options{.b = Transpose::Yes, .accumulate = wanted.accumulate == Accumulate::Yes};
  if (a.values.count() == 0) return add_nothing(c, options);
  const Tensor of_a = aligned(a.inverse_scale), of_b = aligned(b.inverse_scale);
  const Scaling scaling{of_b.count() > 1 ? Scales::ByRows : Scales::OfMatrices, of_a.raw(), of_b.raw(),
                        wanted.fast_sums};
  if (products_of(c.device()).run(a.values, b.values, c, options, scaling)) return;
  Tensor sums = float_product(c).on(c.device());
  options.accumulate = false;
  run_to_float(a.values, b.values, sums, options);
  scaled_sums(sums, a.inverse_scale, b.inverse_scale, c, wanted.accumulate);
}

}  // namespace trainyard::ops::cuda
