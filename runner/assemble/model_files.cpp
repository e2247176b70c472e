#include "assemble/model_files.h"

#include <algorithm>

#include "checkpoint/files_beside.h"

namespace trainyard::train {
namespace fs = std::filesystem;
namespace {

/// Whether the file or folder `tokenizer` is in that folder.
bool is_in(const fs::path& folder, const fs::path& tokenizer) {
  if (tokenizer == "bytes" || !fs::exists(tokenizer)) return false;
  const fs::path own = fs::is_directory(tokenizer) ? tokenizer : tokenizer.parent_path();
  return fs::equivalent(folder, own.empty() ? "." : own);
}

bool has_name_of(const std::vector<fs::path>& files, const fs::path& file) {
  return std::ranges::any_of(files, [&](const fs::path& each) { return each.filename() == file.filename(); });
}

}  // namespace

std::vector<fs::path> model_files_of(const fs::path& weights, const config::Data& data) {
  std::vector<fs::path> files;
  if (!weights.empty()) files = checkpoint::files_beside(weights);
  const fs::path given = data.tokenizer;
  if (given.empty() || (!files.empty() && is_in(checkpoint::model_folder_of(weights), given))) return files;
  const std::vector<fs::path> tokenizer = checkpoint::tokenizer_files(given);
  std::erase_if(files, [&](const fs::path& file) {
    return checkpoint::is_tokenizer_file(file.filename().string()) || has_name_of(tokenizer, file);
  });
  files.insert(files.end(), tokenizer.begin(), tokenizer.end());
  return files;
}

}  // namespace trainyard::train
