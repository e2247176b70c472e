#include "ops/cpu/gemm.h"

#include <dnnl.h>
#include <fmt/format.h>

#include <new>
#include <optional>
#include <stdexcept>

#include "ops/cpu/amx.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu_info.h"

// oneDNN exports this beside dnnl_sgemm, with the same arguments, but leaves it out of dnnl.h. The matmul primitive of its
// documentation comes to the same kernels, but has to be made for each shape.
extern "C" dnnl_status_t dnnl_gemm_bf16bf16f32(char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k,
                                               float alpha, const void* a, dnnl_dim_t lda, const void* b,
                                               dnnl_dim_t ldb, float beta, float* c, dnnl_dim_t ldc);

namespace trainyard::ops::cpu {
namespace {

char letter(Transpose transpose) {
  return transpose == Transpose::Yes ? 'T' : 'N';
}

template <typename T, typename Gemm>
void call(const Gemm& gemm, const ProductSize& size, const Factor<T>& a, const Factor<T>& b, const Product& c) {
  if (dry_run()) return;
  std::optional<SerialScope> serial;
  if (!kTeams) serial.emplace();
  const dnnl_status_t status = gemm(letter(a.transpose), letter(b.transpose), size.m, size.n, size.k, size.alpha,
                                    a.data, a.stride, b.data, b.stride, size.beta, c.data, c.stride);
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  if (status != dnnl_success)
    throw std::runtime_error(fmt::format("matmul: oneDNN refused a product of {} x {} x {} (status {})", size.m, size.k,
                                         size.n, static_cast<int>(status)));
}

}  // namespace

void gemm(const ProductSize& size, const Factor<float>& a, const Factor<float>& b, const Product& c) {
  call(dnnl_sgemm, size, a, b, c);
}

void gemm(const ProductSize& size, const Factor<BFloat16>& a, const Factor<BFloat16>& b, const Product& c) {
  if (multiplies_bfloat16_in_tiles()) return amx_gemm(size, a, b, c);
  call(dnnl_gemm_bf16bf16f32, size, a, b, c);
}

}  // namespace trainyard::ops::cpu
