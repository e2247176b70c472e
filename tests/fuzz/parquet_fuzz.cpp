#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "data/columns/parquet.h"

namespace {
constexpr int64_t kEnough = 100'000;
struct Enough {};
}  // namespace

// A Parquet file is refused, or has as many rows as it says, in order. A few bytes may say that one text stands in any
// number of them, so reading ends after some.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  for (const char* const name : {"plain", "dictionary", "lengths", "prefixes", "text"}) try {
      const auto column = data::read_parquet({.name = "input", .bytes = content}, name);
      int64_t rows = 0;
      while (const auto part = column->next())
        part->for_each([&](std::string_view, int64_t row) {
          if (row != ++rows) std::abort();
          if (rows == kEnough) throw Enough{};
        });
      if (rows != column->rows()) std::abort();
    } catch (const InputError&) {
    } catch (const Enough&) {
    }
  return 0;
}
