#pragma once

#include <string>

namespace trainyard::ops {

/// What the products run on, by the types that they are given, on this processor:
/// "float32 by oneDNN 2.6.3 with AVX-512; bf16 with AVX-512 BF16; fp16 as float32". Where ONEDNN_MAX_CPU_ISA
/// holds it back, that counts.
std::string describe_cpu_kernels();

/// The instructions of float32 products where the best that oneDNN may use is `isa`, a dnnl_cpu_isa_t: those for other
/// types (VNNI, bf16, AMX) have no part in them.
const char* float32_instructions(int isa);

/// The instructions of bfloat16 products, "AMX" or "AVX-512 BF16". Null: there are none, and bfloat16 is converted.
const char* bfloat16_instructions(int isa);

/// Whether this processor multiplies bfloat16 as it is.
bool multiplies_bfloat16();

/// Whether it does so by AMX, which the kernel grants to this process. Who limits oneDNN's instructions
/// (ONEDNN_MAX_CPU_ISA) limits these too.
bool multiplies_bfloat16_in_tiles();

}  // namespace trainyard::ops
