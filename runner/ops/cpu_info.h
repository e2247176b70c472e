#pragma once

#include <string>

namespace trainyard::ops {

/// The library of the matrix products and the instructions that it uses on this processor, such as
/// "oneDNN 2.6.3, AVX-512 with bf16". Where ONEDNN_MAX_CPU_ISA holds it back, that counts.
std::string describe_cpu_kernels();

}  // namespace trainyard::ops
