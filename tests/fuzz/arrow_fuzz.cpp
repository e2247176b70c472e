#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "data/columns/arrow.h"

// An Arrow file is refused, or has as many rows as it says, in order.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  for (const char* const name : {"text", "views"}) try {
      const auto column = data::read_arrow({.name = "input", .bytes = content, .memory = {}}, name);
      int64_t rows = 0;
      while (const auto part = column->next())
        part->for_each([&](std::string_view, int64_t row) {
          if (row != ++rows) std::abort();
        });
      if (rows != column->rows()) std::abort();
    } catch (const InputError&) {
    }
  return 0;
}
