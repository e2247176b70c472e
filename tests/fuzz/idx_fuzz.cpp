#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "data/idx.h"

// An idx file is refused, or has as many values as its sizes say, those behind its header.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  for (const int dimensions : {1, 3}) try {
      const data::IdxArray array = data::parse_idx(content, dimensions, "input");
      const auto count = static_cast<size_t>(count_of(array.shape));
      if (array.values.size() != count || content.substr(size - count) != array.values) std::abort();
    } catch (const InputError&) {
    }
  return 0;
}
