#include "assemble/tokenizer.h"

#include <fmt/format.h>

#include "base/error.h"

namespace trainyard::train {

std::unique_ptr<tokenizer::Tokenizer> tokenizer_of(const config::Loaded& loaded) {
  const std::string& path = loaded.config.data.tokenizer;
  const std::string from = loaded.origin("data.tokenizer");
  try {
    return path.empty() ? nullptr : tokenizer::load_tokenizer(path);
  } catch (const InputError& error) {
    if (!from.starts_with("default of ")) throw;
    throw InputError(fmt::format("{}. No key names a tokenizer, so this path is the {}; name yours by that key or by "
                                 "data.tokenizer",
                                 error.what(), from));
  }
}

}  // namespace trainyard::train
