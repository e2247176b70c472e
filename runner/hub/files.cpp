#include "hub/files.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "base/text.h"
#include "tokenizer/file_names.h"

namespace trainyard::hub {
namespace {

/// What goes with a tokenizer's own files: the model's configuration, a chat template, the words of another kind.
constexpr std::array kBesideTokenizer{"config.json", "vocab.txt", "chat_template.*"};
constexpr std::array kBesideWeights{"config.json", "generation_config.json", "LICENSE*", "NOTICE*"};

/// One way in which weights are stored: in one file, or in many with an index.
struct Form {
  const char *whole, *index, *part;
};
constexpr std::array kForms{
    Form{"model.safetensors", "model.safetensors.index.json", "model-[0-9]*-of-[0-9]*.safetensors"},
    Form{"pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-[0-9]*-of-[0-9]*.bin"}};

bool fits(const char* pattern, const std::string& name) {
  return ::fnmatch(pattern, name.c_str(), FNM_PATHNAME) == 0;
}

bool has(const FileNames& there, std::string_view name) {
  return std::ranges::find(there, name) != there.end();
}

template <typename Patterns>
bool fits_one(const Patterns& patterns, const std::string& name) {
  return std::ranges::any_of(patterns, [&](const char* pattern) { return fits(pattern, name); });
}

template <typename Names>
bool is_among(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool goes_with_tokenizer(const std::string& name) {
  return is_among(tokenizer::kSingleFiles, name) || is_among(tokenizer::kVocabAndMerges, name) ||
         is_among(tokenizer::kSettingFiles, name) || fits_one(kBesideTokenizer, name);
}

/// The list of merges alone is none.
bool has_tokenizer(const FileNames& there) {
  return has(there, tokenizer::kVocabAndMerges.front()) ||
         std::ranges::any_of(tokenizer::kSingleFiles, [&](std::string_view name) { return has(there, name); });
}

/// How many files "model-00001-of-00003.safetensors" says there are; 0 where it says nothing.
int64_t parts_said_by(const std::string& name) {
  const size_t of = name.rfind("-of-"), end = name.rfind('.');
  if (of == std::string::npos || end == std::string::npos || end < of) return 0;
  return parse_int(name.substr(of + 4, end - of - 4)).value_or(0);
}

bool is_stored_as(const Form& form, const FileNames& there) {
  return has(there, form.whole) || has(there, form.index);
}

bool is_of_form(const Form& form, const FileNames& there, const std::string& name) {
  return has(there, form.whole) ? name == form.whole : name == form.index || fits(form.part, name);
}

std::string lacking_parts(const Form& form, const FileNames& there) {
  if (has(there, form.whole)) return "";
  int64_t parts = 0, said = 0;
  for (const std::string& name : there)
    if (fits(form.part, name)) ++parts, said = std::max(said, parts_said_by(name));
  if (parts == 0) return fmt::format("the files that {} names", form.index);
  return parts < said ? fmt::format("{} of {} files like {}", said - parts, said, form.part) : "";
}

std::string lacking_weights(const FileNames& there) {
  for (const Form& form : kForms)
    if (is_stored_as(form, there)) return lacking_parts(form, there);
  return fmt::format("weights: none of {}, {}, {}", kForms[0].whole, kForms[0].index, kForms[1].whole);
}

FileNames weights_of(const FileNames& there) {
  FileNames weights;
  for (const Form& form : kForms) {
    if (!is_stored_as(form, there)) continue;
    std::ranges::copy_if(there, std::back_inserter(weights),
                         [&](const std::string& name) { return is_of_form(form, there, name); });
    break;
  }
  return weights;
}

}  // namespace

FileNames needed(Need need, const FileNames& there) {
  if (need == Need::Config) return has(there, "config.json") ? FileNames{"config.json"} : FileNames{};
  const FileNames weights = need == Need::Weights ? weights_of(there) : FileNames{};
  FileNames taken;
  for (const std::string& name : there) {
    const bool goes_along = need == Need::Weights && fits_one(kBesideWeights, name);
    if (goes_with_tokenizer(name) || goes_along || std::ranges::find(weights, name) != weights.end())
      taken.push_back(name);
  }
  return taken;
}

std::string lacking(Need need, const FileNames& there) {
  if (need == Need::Tokenizer) {
    return has_tokenizer(there) ? "" : "tokenizer: none of tokenizer.json, tokenizer.model, vocab.json with merges.txt";
  }
  if (!has(there, "config.json")) return "config.json";
  return need == Need::Weights ? lacking_weights(there) : "";
}

FileNames matching(std::span<const std::string> patterns, const FileNames& there) {
  FileNames taken;
  for (const std::string& file : there) {
    const std::string last = file.substr(file.rfind('/') + 1);  // npos + 1 is 0
    if (std::ranges::any_of(patterns, [&](const std::string& pattern) { return fits(pattern.c_str(), last); }))
      taken.push_back(file);
  }
  return taken;
}

std::vector<std::string> patterns_of_assets(const std::string& word) {
  static const std::map<std::string, std::vector<std::string>> kPatterns{
      {"tokenizer",
       {"tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.txt", "vocab.json", "merges.txt",
        "special_tokens_map.json"}},
      {"safetensors", {"*.safetensors", "model.safetensors.index.json"}},
      {"index", {"model.safetensors.index.json"}},
      {"config", {"config.json", "generation_config.json"}}};
  const auto found = kPatterns.find(word);
  return found == kPatterns.end() ? std::vector<std::string>{} : found->second;
}

}  // namespace trainyard::hub
