#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "data/corpus.h"
#include "data/loaders.h"
#include "tokenizer/tokenizer.h"

// Corpora of a few bytes, for the tests of what becomes of them.
namespace trainyard::data {
namespace fs = std::filesystem;

inline std::string text_of(const TokenArray& tokens) {  // byte tokenizer: ids are bytes, 256 the end of a document
  std::string text;
  for (int64_t i = 0; i < tokens.size(); ++i) text += tokens[i] == 256 ? '|' : static_cast<char>(tokens[i]);
  return text;
}

inline TokenArray open_bytes(const fs::path& path, const std::string& field = "text") {
  return open_corpus({.path = path, .field = field}, *tokenizer::load_tokenizer("bytes"));
}

inline std::vector<fs::path> files_of(const fs::path& folder) {
  if (!fs::exists(folder)) return {};
  return {fs::directory_iterator(folder), {}};
}

inline void write(const fs::path& path, std::string_view content) {
  fs::create_directories(path.parent_path());
  write_file_atomically(path, content);
}

}  // namespace trainyard::data
