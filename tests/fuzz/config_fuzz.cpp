#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "config/check.h"
#include "config/load.h"
#include "config/print.h"

// Any YAML and any flags either load, and then print to YAML that loads to the same, or are refused as input.
// The bytes before the first 0xFF are the file; each later piece is an argument.
namespace {
using namespace trainyard;

void judge(const config::Loaded& loaded) {
  try {
    config::check(loaded);
  } catch (const InputError&) {
    return;  // contradictory values are no less well printed
  }
}

void must_load_again(const config::Loaded& loaded) {
  const config::Loaded again = config::load({}, {{"printed", config::print_config(loaded)}});
  if (config::shared_text(again.config) != config::shared_text(loaded.config)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> arguments = split({reinterpret_cast<const char*>(data), size}, '\xFF');
  const std::string text = std::move(arguments.front());
  arguments.erase(arguments.begin());
  // Files that the fuzzer names are not the subject.
  std::erase_if(arguments, [](const std::string& argument) { return argument.starts_with("--config"); });
  std::optional<config::Loaded> loaded;
  try {
    loaded = config::load(arguments, {{"fuzz.yaml", text}});
  } catch (const InputError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();  // one line
    return 0;
  }
  judge(*loaded);
  must_load_again(*loaded);
  return 0;
}
