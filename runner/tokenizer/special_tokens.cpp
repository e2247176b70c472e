#include "tokenizer/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "tokenizer/bpe_model.h"
#include "tokenizer/json_file.h"

namespace trainyard::tokenizer {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::array kDocumentEnds{"<|end_of_text|>", "<|endoftext|>", "</s>", "<eos>"};
constexpr std::array kTurnEnds{"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<end_of_turn>"};
constexpr int64_t kMaxExtraIds = 10'000;

/// A token is written as a string or as {"content": …}.
std::optional<std::string> token_text(const Field& field) {
  if (field.is_null()) return std::nullopt;
  return field.value().is_object() ? field.at("content").text() : field.text();
}

void read_ends(const Field& config, SpecialTokens& special) {
  if (const auto eos = token_text(config.at("eos_token"))) special.eos = eos;
  if (const auto bos = token_text(config.at("bos_token"))) special.bos = bos;
}

void read_added_tokens_file(const Field& file, SpecialTokens& special) {
  for (const auto& [text, id] : file.object().items())
    special.texts[Field(id, file.where() + ": " + text).token_id()] = text;
}

void read_config(const Field& config, SpecialTokens& special) {
  read_ends(config, special);
  if (const Field name = config.at("tokenizer_class"); !name.is_null()) special.tokenizer_class = name.text();
  if (special.tokenizer_class.ends_with("Fast")) special.tokenizer_class.resize(special.tokenizer_class.size() - 4);
  if (const Field extra = config.at("extra_ids"); !extra.is_null()) {
    special.extra_ids = extra.token_id();
    if (special.extra_ids > kMaxExtraIds) extra.fail(fmt::format("a number up to {}", kMaxExtraIds));
  }
  const Field decoder = config.at("added_tokens_decoder");
  if (decoder.is_null()) return;
  for (const auto& [id, token] : decoder.object().items()) {
    const Field field(token, decoder.where() + "." + id);
    const auto number = parse_int(id);
    if (!number || *number < 0 || *number >= kMaxVocab)
      throw InputError(fmt::format("{}: the key must be a token id from 0 to {}", field.where(), kMaxVocab - 1));
    special.texts[static_cast<int32_t>(*number)] = field.at("content").text();
  }
}

template <typename Read>
void read_if_there(const fs::path& path, SpecialTokens& special, const Read& read) {
  if (!fs::exists(path)) return;
  const std::string content = read_file(path, kMaxFileBytes);
  const json parsed = parse_json(content, path.string());
  read(Field(parsed, path.string()), special);
  special.content += path.filename().string() + '\n' + content + '\n';
}

}  // namespace

SpecialTokens read_special_tokens(const fs::path& folder) {
  SpecialTokens special;
  read_if_there(folder / "added_tokens.json", special, read_added_tokens_file);
  read_if_there(folder / "special_tokens_map.json", special, read_ends);
  read_if_there(folder / "tokenizer_config.json", special, read_config);
  return special;
}

std::optional<int32_t> document_end(const SpecialTokens& special, const FindToken& find) {
  const bool ends_a_turn = special.eos && std::ranges::find(kTurnEnds, *special.eos) != kTurnEnds.end();
  const auto configured = special.eos ? find(*special.eos) : std::nullopt;
  if (configured && !ends_a_turn) return configured;
  for (const char* const text : kDocumentEnds)
    if (const auto id = find(text)) return id;
  return configured;
}

std::optional<int32_t> document_begin(const SpecialTokens& special, const FindToken& find) {
  return special.bos ? find(*special.bos) : std::nullopt;
}

}  // namespace trainyard::tokenizer
