#include "data/columns/arrow.h"
#include "read_column.h"

using namespace trainyard;

// An Arrow file is refused, or has as many rows as it says, in order.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const data::FileContent file{
      .name = "input", .bytes = std::string_view(reinterpret_cast<const char*>(data), size), .memory = {}};
  for (const char* const name : {"text", "views"}) fuzz::read_column([&] { return data::read_arrow(file, name); });
  fuzz::read_column([&] { return data::read_arrow(file, {.needed = "messages", .optional = {"other", "input_ids"}}); });
  return 0;
}
