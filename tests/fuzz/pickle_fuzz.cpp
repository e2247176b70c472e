#include <cstdint>
#include <string>

#include "base/error.h"
#include "checkpoint/pickle.h"

// A pickle is refused or read; nothing of it is ever run, and its tensors can be listed.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  try {
    const checkpoint::Pickle pickle({reinterpret_cast<const char*>(data), size}, "input");
    static_cast<void>(checkpoint::tensors_below(pickle.root(), "input"));
  } catch (const InputError&) {
  }
  return 0;
}
