#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "data/columns/parquet.h"

namespace {
using namespace trainyard;
constexpr int64_t kEnough = 100'000;
struct Enough {};

void read(data::TextColumn& column) {
  int64_t rows = 0;
  while (const auto part = column.next())
    part->for_each([&](std::string_view, int64_t row) {
      if (row != ++rows) std::abort();
      if (rows == kEnough) throw Enough{};
    });
  if (rows != column.rows()) std::abort();
}
}  // namespace

// A Parquet file is refused, or has as many rows as it says, in order. A few bytes may say that one text stands in any
// number of them, so reading ends after some.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const data::FileContent file{.name = "input", .bytes = std::string_view(reinterpret_cast<const char*>(data), size)};
  const auto tries = [](const auto& open) {
    try {
      read(*open());
    } catch (const InputError&) {
    } catch (const Enough&) {
    }
  };
  for (const char* const name : {"plain", "dictionary", "lengths", "prefixes", "text"})
    tries([&] { return data::read_parquet(file, name); });
  tries([&] { return data::read_parquet(file, {.needed = "messages", .optional = {"other", "input_ids"}}); });
  return 0;
}
