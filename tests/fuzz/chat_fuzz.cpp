#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "chat/template.h"

// Any text either is a template, which then renders within its limits, or is refused with one error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  static const nlohmann::ordered_json variables = {
      {"messages", {{{"role", "user"}, {"content", "Hi \u00e9"}}, {{"role", "assistant"}, {"content", nullptr}}}},
      {"tools", {{{"type", "function"}, {"function", {{"name", "f"}, {"parameters", {{"x", 1.5}}}}}}}},
      {"bos_token", "<s>"},
      {"add_generation_prompt", true}};
  try {
    const chat::Template text({reinterpret_cast<const char*>(data), size}, "fuzz");
    static_cast<void>(
        text.render(variables, {.limits = {.depth = 200, .steps = 20'000, .bytes = 1 << 24, .text_bytes = 1 << 20}}));
  } catch (const InputError&) {  // as it should be
  }
  return 0;
}
