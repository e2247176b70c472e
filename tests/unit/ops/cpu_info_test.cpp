#include "ops/cpu_info.h"

#include <catch2/catch.hpp>
#include <dnnl.h>

namespace trainyard::ops {

TEST_CASE("cpu kernels: for each type the instructions are told that its products run on", "[ops]") {
  for (const dnnl_cpu_isa_t isa : {dnnl_cpu_isa_avx512_core, dnnl_cpu_isa_avx512_core_vnni,
                                   dnnl_cpu_isa_avx512_core_bf16, dnnl_cpu_isa_avx512_core_amx})
    CHECK(std::string(float32_instructions(isa)) == "AVX-512");
  CHECK(std::string(float32_instructions(dnnl_cpu_isa_avx2_vnni)) == "AVX2");
  CHECK(std::string(float32_instructions(0)) == "baseline instructions");
  CHECK(std::string(bfloat16_instructions(dnnl_cpu_isa_avx512_core_bf16)) == "AVX-512 BF16");
  CHECK(std::string(bfloat16_instructions(dnnl_cpu_isa_avx512_core_amx)) == "AMX");
  for (const dnnl_cpu_isa_t isa : {dnnl_cpu_isa_avx2, dnnl_cpu_isa_avx512_core, dnnl_cpu_isa_avx512_core_vnni})
    CHECK(bfloat16_instructions(isa) == nullptr);
  const std::string rest = multiplies_bfloat16() ? "; fp16 as float32" : "; bf16 and fp16 converted to it";
  CHECK_THAT(describe_cpu_kernels(), Catch::StartsWith("float32 by oneDNN ") && Catch::EndsWith(rest));
}

}  // namespace trainyard::ops
