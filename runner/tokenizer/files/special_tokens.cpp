#include "tokenizer/files/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "tokenizer/bpe/bpe_model.h"
#include "tokenizer/files/json_file.h"

namespace trainyard::tokenizer {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::array kDocumentEnds{"<|end_of_text|>", "<|endoftext|>", "</s>", "<eos>"};
constexpr std::array kTurnEnds{"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<end_of_turn>"};
constexpr int64_t kMaxExtraIds = 10'000;

/// A token is written as a string or as {"content": …}.
std::optional<AddedToken> token_with_role(const Field& field) {
  const bool is_token = field.value().is_string() || (field.value().is_object() && !field.at("content").is_null());
  if (!is_token) return std::nullopt;
  AddedToken token{.content = field.value().is_string() ? field.text() : ""};
  if (field.value().is_object()) token = read_added_token(field);
  token.special = true;
  return token;
}

void read_ends(const Field& config, SpecialTokens& special) {
  const auto text_of = [&](const char* name) -> std::optional<std::string> {
    const Field field = config.at(name);
    if (field.is_null()) return std::nullopt;
    return field.value().is_object() ? field.at("content").text() : field.text();
  };
  if (const auto eos = text_of("eos_token")) special.eos = eos, special.eos_where = config.at("eos_token").where();
  if (const auto bos = text_of("bos_token")) special.bos = bos;
}

bool has_normalized(const Field& token) {
  return token.value().is_object() && !token.at("normalized").is_null();
}

/// A token of a list says by `__type` that its flags are its own.
bool has_own_flags(const json& token) {
  return token.is_object() && token.contains("__type");
}

/// Every token that has a role: eos_token, pad_token, and those of the lists.
void read_roles(const Field& config, SpecialTokens& special) {
  read_ends(config, special);
  for (const auto& [name, value] : config.object().items()) {
    const Field field(value, config.where());
    const auto token = name.ends_with("_token") ? token_with_role(field) : std::nullopt;
    if (token) special.named.emplace(token->content, *token);
    if (token) special.read_by_transformers.roles.emplace(token->content, WrittenToken{*token, has_normalized(field)});
    if (name != "additional_special_tokens" && name != "extra_special_tokens") continue;
    if (!value.is_array() && !value.is_object()) continue;
    for (const json& each : value)
      if (const auto extra = token_with_role(Field(each, config.where()))) {
        special.named.emplace(extra->content, *extra);
        special.read_by_transformers.extra.emplace(
            extra->content, has_own_flags(each) ? read_added_token(Field(each, config.where())) : *extra);
      }
  }
}

void read_added_tokens_file(const Field& file, SpecialTokens& special) {
  for (const auto& [text, id] : file.object().items()) {
    const AddedToken token{.content = text, .normalized = true};
    special.added[Field(id, file.where() + ": " + text).token_id()] = token;
    special.read_by_transformers.added[text] = {.token = token, .has_normalized = false};
  }
}

void read_added_tokens_decoder(const Field& decoder, SpecialTokens& special) {
  for (const auto& [id, token] : decoder.object().items()) {
    const Field field(token, decoder.where() + "." + id);
    const auto number = parse_int(id);
    if (!number || *number < 0 || *number >= kMaxVocab)
      throw InputError(fmt::format("{}: the key must be a token id from 0 to {}", field.where(), kMaxVocab - 1));
    const AddedToken& added = special.added[static_cast<int32_t>(*number)] = read_added_token(field);
    special.read_by_transformers.added[added.content] = {added, has_normalized(field)};
  }
}

void read_config(const Field& config, SpecialTokens& special) {
  const Field decoder = config.at("added_tokens_decoder");
  if (!decoder.is_null()) special.read_by_transformers = {.has_decoder = true};
  read_roles(config, special);
  special.has_config = true;
  if (const Field name = config.at("tokenizer_class"); !name.is_null()) special.tokenizer_class = name.text();
  if (const Field space = config.at("add_prefix_space"); !space.is_null()) special.add_prefix_space = space.flag(false);
  special.legacy = config.at("legacy").flag(false);
  if (const Field extra = config.at("extra_ids"); !extra.is_null()) {
    special.extra_ids = extra.token_id();
    if (special.extra_ids > kMaxExtraIds) extra.fail(fmt::format("a number up to {}", kMaxExtraIds));
  }
  if (!decoder.is_null()) read_added_tokens_decoder(decoder, special);
}

/// What is not read as a model here is none of the tokenizer's business.
void read_model_config(const fs::path& config, SpecialTokens& special) {
  if (!fs::is_regular_file(config)) return;
  const json parsed = json::parse(read_file(config, kMaxFileBytes), nullptr, false);
  const auto text_of = [&](const char* name) -> std::string {
    const bool has_text = parsed.is_object() && parsed.contains(name) && parsed[name].is_string();
    return has_text ? parsed[name].get<std::string>() : "";
  };
  special.model_type = text_of("model_type");
  if (special.tokenizer_class.empty()) special.tokenizer_class = text_of("tokenizer_class");
}

void make_special(WrittenToken& written) {
  written.token.special = true;
  if (!written.has_normalized) written.token.normalized = false;
}

/// Takes every token of added_tokens.json that has a role or is of the lists.
void set_special_by_role(ReadByTransformers& read) {
  for (auto& [content, token] : read.added)
    if (!read.has_decoder && (read.roles.contains(content) || read.extra.contains(content))) make_special(token);
}

/// A role says whether a token of added_tokens.json is special; elsewhere its flags do.
void set_special_by_role(SpecialTokens& special) {
  for (auto& [id, token] : special.added)
    if (token == AddedToken{.content = token.content, .normalized = true} && special.named.contains(token.content))
      token.special = true, token.normalized = false;
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

AddedToken read_added_token(const Field& token) {
  const bool special = token.at("special").flag(false);
  return {.content = token.at("content").text(),
          .special = special,
          .normalized = token.at("normalized").flag(!special),
          .single_word = token.at("single_word").flag(false),
          .lstrip = token.at("lstrip").flag(false),
          .rstrip = token.at("rstrip").flag(false)};
}

SpecialTokens read_special_tokens(const fs::path& folder, SpecialTokensAre in_text) {
  SpecialTokens special;
  special.in_text = in_text;
  read_if_there(folder / "added_tokens.json", special, read_added_tokens_file);
  read_if_there(folder / "special_tokens_map.json", special, read_roles);
  read_if_there(folder / "tokenizer_config.json", special, read_config);
  set_special_by_role(special);
  set_special_by_role(special.read_by_transformers);
  read_model_config(folder / "config.json", special);
  if (special.tokenizer_class.ends_with("Fast")) special.tokenizer_class.resize(special.tokenizer_class.size() - 4);
  return special;
}

TokensByContent tokens_in_transformers(const ReadByTransformers& read, const std::map<int32_t, AddedToken>& of_file,
                                       std::string_view class_name) {
  std::map<std::string, WrittenToken> written = read.added;
  TokensByContent tokens;
  for (const auto& [id, token] : of_file) {
    if (!read.has_decoder) written[token.content] = {token};
    if (class_name.empty()) tokens[token.content] = token;
  }
  for (const auto& [content, role] : read.roles)
    if (const auto known = written.find(content); known != written.end()) make_special(known->second);
  for (const auto& [content, each] : written) {
    const bool was_special = tokens.contains(content) && tokens[content].special;
    tokens[content] = each.token;
    tokens[content].special |= was_special;  // what tokenizers once takes for special remains it
  }
  for (auto [content, role] : read.roles) {
    make_special(role);
    tokens.emplace(content, role.token);
  }
  tokens.insert(read.extra.begin(), read.extra.end());
  if (class_name == "Qwen2Tokenizer")  // adds them all once more, without flags
    for (auto& [content, token] : tokens)
      if (read.roles.contains(content) || read.extra.contains(content)) token = {.content = content, .special = true};
  return tokens;
}

bool has_other_tokens(const SpecialTokens& special, const FindToken& find) {
  TokensByContent now = special.as_in_transformers.value_or(TokensByContent{}), before;
  for (const auto& [id, token] : special.added) before[token.content] = token;
  for (auto& [content, token] : before) token.special |= special.named.contains(content);
  const TokensByContent added = before;
  before.insert(special.named.begin(), special.named.end());
  const auto is_idle = [&](const auto& each) {
    const bool has_id = added.contains(each.first) || find(each.first);
    return !has_id || (each.second.special && special.in_text == SpecialTokensAre::Text);
  };
  std::erase_if(now, is_idle), std::erase_if(before, is_idle);
  return now != before;
}

std::map<int32_t, AddedToken> tokens_in_text(const SpecialTokens& special, const FindToken& find) {
  std::map<int32_t, AddedToken> tokens;
  if (special.as_in_transformers) {
    for (const auto& [content, token] : *special.as_in_transformers)
      if (const auto id = find(content)) tokens.emplace(*id, token);
    return tokens;
  }
  tokens = special.added;
  for (auto& [id, token] : tokens) token.special |= special.named.contains(token.content);
  for (const auto& [content, token] : special.named)
    if (const auto id = find(content)) tokens.emplace(*id, token);
  return tokens;
}

std::optional<int32_t> document_end(const SpecialTokens& special, const FindToken& find) {
  const bool ends_a_turn = special.eos && std::ranges::find(kTurnEnds, *special.eos) != kTurnEnds.end();
  const auto configured = special.eos ? find(*special.eos) : std::nullopt;
  if (special.eos && !configured)
    throw InputError(fmt::format("{} is '{}', which no vocabulary of this tokenizer has; name one that it has, or null",
                                 special.eos_where, *special.eos));
  if (configured && !ends_a_turn) return configured;
  for (const char* const text : kDocumentEnds)
    if (const auto id = find(text)) return id;
  return configured;
}

std::optional<int32_t> document_begin(const SpecialTokens& special, const FindToken& find) {
  return special.bos ? find(*special.bos) : std::nullopt;
}

}  // namespace trainyard::tokenizer
