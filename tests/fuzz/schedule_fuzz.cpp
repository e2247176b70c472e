#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "pipeline/simulation.h"

// Any file either is a schedule, which then prints to one that is the same and is simulated or refused, or is refused.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  try {
    const pipeline::Schedule schedule = pipeline::parse_csv({reinterpret_cast<const char*>(data), size}, "fuzz");
    const std::string printed = pipeline::to_csv(schedule);
    if (pipeline::to_csv(pipeline::parse_csv(printed, "printed")) != printed) std::abort();
    static_cast<void>(pipeline::to_svg(pipeline::simulate(schedule, {}, "fuzz"), "fuzz"));
  } catch (const InputError&) {  // as it should be
  }
  return 0;
}
