// Event files of an earlier start are cut back where they are no longer whole: any text is a list of records and a
// rest.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "metrics/event_record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  while (const auto record = trainyard::metrics::first_record(text)) {
    if (record->bytes == 0 || record->bytes > text.size()) std::abort();
    text.remove_prefix(record->bytes);
  }
  return 0;
}
