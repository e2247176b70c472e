#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "dialects/tables.h"

// Any file of another program is translated or refused as input, in one line. The first byte says which program's.
namespace {
using namespace trainyard;

dialects::Translation translated(uint8_t which, const config::YamlText& source) {
  config::Loaded run;
  run.config.training.steps = 10;  // what follows from a run follows from this one
  switch (which % 5) {
    case 0:
      return dialects::translate(dialects::accelerate(), dialects::read_accelerate(source), {.run = &run});
    case 1:
      return dialects::translate(dialects::trainer(), dialects::read_trainer_config(source), {.run = &run});
    case 2:
      return dialects::translate(dialects::trainer(), dialects::read_trainer_words(source.text), {.run = &run});
    case 3:
      return dialects::translate(dialects::deepspeed(), dialects::read_deepspeed(source), {.run = &run});
    default:
      return dialects::translate(dialects::torchtitan(), dialects::read_toml(source), {.run = &run});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  try {
    const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
    config::refuse(translated(data[0], {"fuzz", text}).problems);
  } catch (const InputError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
