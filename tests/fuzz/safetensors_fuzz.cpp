#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "tensor/safetensors_header.h"

// The header of a safetensors file is refused or parsed; what was parsed lies inside the data and prints to a header
// that parses to the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  if (size < 2) return 0;
  const uint64_t data_bytes = data[0] | static_cast<uint64_t>(data[1]) << 8U;
  const std::string json(reinterpret_cast<const char*>(data) + 2, size - 2);
  try {
    const SafetensorsHeader header = parse_safetensors_header(json, data_bytes, "input");
    for (const SafetensorsEntry& entry : header.entries)
      if (entry.begin > entry.end || entry.end > data_bytes || count_of(entry.shape) < 0) std::abort();
    const std::string printed = format_safetensors_header(header.entries, header.metadata).substr(8);
    if (parse_safetensors_header(printed, data_bytes, "printed").entries.size() != header.entries.size()) std::abort();
  } catch (const InputError&) {
  }
  return 0;
}
