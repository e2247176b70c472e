#include "checkpoint/files_beside.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoint/copied_files.h"
#include "checkpoint/layout.h"
#include "checkpoint/manifest.h"
#include "checkpoint/open_weights.h"
#include "tokenizer/file_names.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::array<std::string_view, 2> kChatTemplates{"chat_template.jinja", "chat_template.json"};

/// Written anew with what is true of the new weights, or of no use without the old ones.
constexpr std::array<std::string_view, 9> kOfTheWeights{
    "params.json",       "checklist.chk",        "config.json",
    kManifestName,       "adapter_config.json",  "quantize_config.json",
    "quant_config.json", "hf_quant_config.json", "quantization_config.json"};
constexpr std::array<std::string_view, 16> kWeightEndings{
    ".safetensors", ".index.json", ".bin",  ".pt",  ".pth", ".ckpt",   ".distcp", ".h5",
    ".msgpack",     ".onnx",       ".gguf", ".ggml", ".npz", ".tflite", ".ot",     ".mlmodel"};

template <typename Names>
bool is_among(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Its name alone decides.
bool may_go_along(const std::string& name) {
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  return !name.starts_with('.') && !is_among(kOfTheWeights, name) && std::ranges::none_of(kWeightEndings, ends);
}

/// Why the entry of a folder does not go with the weights; "" where it does.
std::string obstacle_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::directory) return "a folder";
  if (status.type() == fs::file_type::not_found) return "a link to nothing";
  if (status.type() != fs::file_type::regular) return error ? error.message() : "not a regular file";
  const uint64_t bytes = fs::file_size(path, error);
  if (error) return error.message();
  const bool is_tokenizers = is_tokenizer_file(path.filename().string());
  return bytes > (is_tokenizers ? kMaxCopiedBytes : kMaxBytesBeside) ? human_bytes(bytes) : "";
}

/// The entries of `folder` whose names may go along, sorted.
std::vector<fs::path> candidates_in(const fs::path& folder) try {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder))
    if (may_go_along(entry.path().filename().string())) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
} catch (const fs::filesystem_error& error) {
  throw InputError(error.what());
}

template <typename Names>
void add_those_in(const fs::path& folder, const Names& names, std::vector<fs::path>& files) {
  for (const std::string_view name : names)
    if (const fs::path file = folder / name; fs::is_regular_file(file) && std::ranges::find(files, file) == files.end())
      files.push_back(file);
}

/// Checkpoints of earlier versions record where the tokenizer's files lay, and do not hold them.
std::vector<fs::path> recorded_tokenizer(const Manifest& manifest) {
  std::vector<fs::path> files;
  for (const json& recorded : manifest.state.value("tokenizer_files", json::array())) {
    const fs::path file = recorded.get<std::string>();
    if (fs::is_regular_file(file))
      files.push_back(file);
    else
      spdlog::warn("{}: this file of the tokenizer has gone; copy it to the weights yourself", file.string());
  }
  return files;
}

bool is_checkpoint(const fs::path& folder) {
  return fs::exists(folder / kManifestName);
}

}  // namespace

bool is_tokenizer_file(std::string_view name) {
  return is_among(tokenizer::kSingleFiles, name) || is_among(tokenizer::kVocabAndMerges, name) ||
         is_among(tokenizer::kSettingFiles, name);
}

std::vector<fs::path> tokenizer_files(const fs::path& path) {
  if (path.empty() || path == "bytes" || !fs::exists(path)) return {};
  const bool is_folder = fs::is_directory(path);
  const fs::path folder = is_folder ? path : path.parent_path();
  std::vector<fs::path> files;
  if (!is_folder) files.push_back(path);
  const bool is_of_pair = is_among(tokenizer::kVocabAndMerges, path.filename().string());
  if (is_folder) add_those_in(folder, tokenizer::kSingleFiles, files);
  if (is_folder || is_of_pair) add_those_in(folder, tokenizer::kVocabAndMerges, files);
  add_those_in(folder, tokenizer::kSettingFiles, files);
  add_those_in(folder, kChatTemplates, files);
  return files;
}

fs::path model_folder_of(const fs::path& weights) {
  fs::path folder = config_path_of(weights).parent_path();
  if (folder.empty()) folder = ".";
  if (is_checkpoint(folder) || fs::exists(folder / "model.safetensors") ||
      fs::exists(folder / "model.safetensors.index.json") || namings_in(folder).empty())
    return folder;
  return locate(folder);
}

std::vector<fs::path> files_beside(const fs::path& weights) {
  const fs::path folder = model_folder_of(weights);
  const bool is_models = fs::is_directory(as_spelled(weights)) || fs::exists(folder / "config.json");
  if (!is_models) return tokenizer_files(folder);
  std::vector<fs::path> files;
  for (const fs::path& path : candidates_in(folder))
    if (obstacle_of(path).empty()) files.push_back(path);
  const auto is_tokenizers = [](const fs::path& path) { return is_tokenizer_file(path.filename().string()); };
  if (is_checkpoint(folder) && std::ranges::none_of(files, is_tokenizers))
    std::ranges::copy(recorded_tokenizer(read_manifest(folder)), std::back_inserter(files));
  return files;
}

void warn_of_left_behind(const fs::path& weights) {
  const fs::path folder = model_folder_of(weights);
  if (!fs::exists(folder / "config.json")) return;
  std::vector<std::string> left;
  for (const fs::path& path : candidates_in(folder))
    if (const std::string obstacle = obstacle_of(path); !obstacle.empty())
      left.push_back(fmt::format("{} ({})", path.filename().string(), obstacle));
  if (!left.empty())
    spdlog::warn("{}: {} do not go with the weights; files of up to {} do", folder.string(), shortened(left),
                 human_bytes(kMaxBytesBeside));
}

}  // namespace trainyard::checkpoint
