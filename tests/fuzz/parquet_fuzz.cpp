#include "data/columns/parquet.h"
#include "read_column.h"

using namespace trainyard;

// A Parquet file is refused, or has as many rows as it says, in order.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const data::FileContent file{.name = "input", .bytes = std::string_view(reinterpret_cast<const char*>(data), size)};
  for (const char* const name : {"plain", "dictionary", "lengths", "prefixes", "text"})
    fuzz::read_column([&] { return data::read_parquet(file, name); });
  fuzz::read_column([&] {
    return data::read_parquet(file, {.needed = "messages", .optional = {"other", "input_ids"}});
  });
  return 0;
}
