#pragma once

#include "ops/cpu/product.h"

// Products of bfloat16 on AMX tiles, Intel's Advanced Matrix Extensions. A tile is 16 rows of 64 bytes, and one
// instruction (TDPBF16PS of Intel's Software Developer's Manual, volume 2) adds the product of 16 x 32 and 32 x 16
// bfloat16 to 16 x 16 float32 sums. oneDNN 2.6, which Debian has, reaches a fifth of the unit's rate.
namespace trainyard::ops::cpu {

/// The longest sums that amx_gemm() rounds: it packs all rows of some columns of op(b) at once.
constexpr int64_t kAmxRoundedDepth = 8192;

/// gemm() as gemm.h says it, where multiplies_bfloat16_in_tiles() (ops/cpu_info.h) is true. What the threads share is
/// where each sum is computed, so that their number changes no bit.
void amx_gemm(const ProductSize& size, const Factor<BFloat16>& a, const Factor<BFloat16>& b, const Product& c);

/// The same with sums that are rounded to bfloat16 once, at their end; size.k is at most kAmxRoundedDepth. `c` has
/// `stride` elements from row to row.
void amx_gemm(const ProductSize& size, const Factor<BFloat16>& a, const Factor<BFloat16>& b, BFloat16* c,
              int64_t stride);

}  // namespace trainyard::ops::cpu
