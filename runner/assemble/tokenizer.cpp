#include "assemble/tokenizer.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"

namespace trainyard::train {
namespace fs = std::filesystem;

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

std::vector<std::string> tokenizer_files_of(const config::Data& data) {
  const fs::path path = data.tokenizer;
  if (fs::is_regular_file(path)) return {path.string()};
  std::vector<std::string> files;
  for (const char* const name : {"tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "merges.txt",
                                 "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"})
    if (!data.tokenizer.empty() && fs::is_regular_file(path / name)) files.push_back((path / name).string());
  return files;
}

}  // namespace trainyard::train
