#include "ops/cpu_info.h"

#include <dnnl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace trainyard::ops {
namespace {

bool is_amx_granted() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

const char* float32_instructions(int isa) {
  switch (static_cast<dnnl_cpu_isa_t>(isa)) {
    case dnnl_cpu_isa_sse41:
      return "SSE4.1";
    case dnnl_cpu_isa_avx:
      return "AVX";
    case dnnl_cpu_isa_avx2:
    case dnnl_cpu_isa_avx2_vnni:
      return "AVX2";
    case dnnl_cpu_isa_avx512_mic:
    case dnnl_cpu_isa_avx512_mic_4ops:
    case dnnl_cpu_isa_avx512_core:
    case dnnl_cpu_isa_avx512_core_vnni:
    case dnnl_cpu_isa_avx512_core_bf16:
    case dnnl_cpu_isa_avx512_core_amx:
      return "AVX-512";
    default:
      return "baseline instructions";
  }
}

const char* bfloat16_instructions(int isa) {
  switch (static_cast<dnnl_cpu_isa_t>(isa)) {
    case dnnl_cpu_isa_avx512_core_amx:
      return "AMX";
    case dnnl_cpu_isa_avx512_core_bf16:
      return "AVX-512 BF16";
    default:
      return nullptr;
  }
}

bool multiplies_bfloat16() {
  static const bool does = bfloat16_instructions(dnnl_get_effective_cpu_isa()) != nullptr;
  return does;
}

bool multiplies_bfloat16_in_tiles() {
  static const bool does = dnnl_get_effective_cpu_isa() == dnnl_cpu_isa_avx512_core_amx && is_amx_granted();
  return does;
}

std::string describe_cpu_kernels() {
  const dnnl_version_t& version = *dnnl_version();
  const dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  const std::string in_float = fmt::format("float32 by oneDNN {}.{}.{} with {}", version.major, version.minor,
                                           version.patch, float32_instructions(isa));
  const char* const bfloat16 = bfloat16_instructions(isa);
  if (!bfloat16) return in_float + "; bf16 and fp16 converted to it";
  return fmt::format("{}; bf16 with {}; fp16 as float32", in_float, bfloat16);
}

}  // namespace trainyard::ops
