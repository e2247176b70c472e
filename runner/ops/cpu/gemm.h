#pragma once

#include "ops/cpu/product.h"

// General matrix products (BLAS's gemm): by oneDNN, or for bfloat16 on AMX tiles by our own kernel (amx.h).
namespace trainyard::ops::cpu {

/// c = alpha · op(a) · op(b) + beta · c with float32 sums, on the calling thread's threads; on one within a parallel
/// region. No size may be 0. A dry run computes nothing. bfloat16 takes a processor for which multiplies_bfloat16()
/// (ops/cpu_info.h) is true.
void gemm(const ProductSize& size, const Factor<float>& a, const Factor<float>& b, const Product& c);
void gemm(const ProductSize& size, const Factor<BFloat16>& a, const Factor<BFloat16>& b, const Product& c);

}  // namespace trainyard::ops::cpu
