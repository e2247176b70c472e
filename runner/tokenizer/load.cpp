#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "tokenizer/file_names.h"
#include "tokenizer/files/json_file.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/files/special_tokens.h"
#include "tokenizer/files/tokenizer_class.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::tokenizer {
namespace {
namespace fs = std::filesystem;

std::unique_ptr<Tokenizer> load_vocab_and_merges(const fs::path& folder, SpecialTokensAre in_text) {
  for (const std::string_view name : kVocabAndMerges)
    if (!fs::is_regular_file(folder / name))
      throw InputError(fmt::format("{}: missing; vocab.json and merges.txt belong together", (folder / name).string()));
  const std::string vocab = read_file(folder / "vocab.json", kMaxFileBytes),
                    merges = read_file(folder / "merges.txt", kMaxFileBytes);
  return read_vocab_and_merges({vocab, (folder / "vocab.json").string()}, {merges, (folder / "merges.txt").string()},
                               read_special_tokens(folder, in_text));
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

/// A vocab.json maps tokens to numbers; only tokenizer.json has an object behind "model".
bool is_tokenizer_json(std::string_view content, const std::string& where) {
  if (!trim(content).starts_with('{')) return false;
  const auto parsed = parse_json(content, where);
  return parsed.contains("model") && parsed["model"].is_object();
}

/// Text formats begin with what no SentencePiece model does: '{', "#version" or a line of `base64 rank`. A model is a
/// protobuf message whose first field is a piece: 0x0A.
std::unique_ptr<Tokenizer> load_file(const fs::path& path, SpecialTokensAre in_text) {
  const fs::path folder = folder_of(path);
  const std::string content = read_file(path, kMaxFileBytes);
  const std::string_view text = trim(content);
  if (text.empty()) throw InputError(fmt::format("{}: the file is empty", path.string()));
  if (text.starts_with('{')) {
    const bool is_whole = is_tokenizer_json(content, path.string());
    return is_whole ? read_hugging_face(content, path.string(), read_special_tokens(folder, in_text))
                    : load_vocab_and_merges(folder, in_text);
  }
  if (text.starts_with("#version")) return load_vocab_and_merges(folder, in_text);
  if (looks_like_tiktoken(content)) return read_tiktoken(content, path.string(), read_special_tokens(folder, in_text));
  if (content.front() == '\n') return read_sentencepiece(content, path.string(), read_special_tokens(folder, in_text));
  throw InputError(fmt::format(
      "{}: no tokenizer that is known here: neither JSON, nor lines of `base64 rank`, nor a SentencePiece model",
      path.string()));
}

/// "": there is none.
fs::path file_in(const fs::path& folder) {
  for (const std::string_view name : kSingleFiles)
    if (fs::is_regular_file(folder / name)) return folder / name;
  return {};
}

std::unique_ptr<Tokenizer> load_folder(const fs::path& folder, SpecialTokensAre in_text) {
  if (const fs::path file = file_in(folder); !file.empty()) return load_file(file, in_text);
  if (fs::exists(folder / "vocab.json") || fs::exists(folder / "merges.txt"))
    return load_vocab_and_merges(folder, in_text);
  throw InputError(fmt::format("{}: no tokenizer: none of {}, vocab.json + merges.txt", folder.string(),
                               fmt::join(kSingleFiles, ", ")));
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const fs::path& path, SpecialTokensAre special) {
  if (path == "bytes") return byte_tokenizer(special);
  if (!fs::exists(path))
    throw InputError(fmt::format("{}: no such tokenizer; give a file, a folder, or 'bytes': nothing is downloaded", path.string()));
  return fs::is_directory(path) ? load_folder(path, special) : load_file(path, special);
}

std::string other_class_beside(const std::string& model_type, const fs::path& path) {
  const fs::path file = fs::is_directory(path) ? file_in(path) : path;
  if (path == "bytes" || file.empty()) return "";
  const SpecialTokens special = read_special_tokens(folder_of(file), SpecialTokensAre::Text);
  SpecialTokens beside_model = special;
  beside_model.model_type = model_type;
  const auto here = special.has_config ? steps_of_class(special) : std::nullopt;
  const auto there = steps_of_class(beside_model);
  if (here == there) return "";  // as in most runs, whose tokenizer is then not read once more
  const std::string content = read_file(file, kMaxFileBytes);
  if (!is_tokenizer_json(content, file.string()) || have_same_steps(content, file.string(), here, there)) return "";
  return there ? std::string(class_of(beside_model)) : "PreTrainedTokenizerFast";
}

}  // namespace trainyard::tokenizer
