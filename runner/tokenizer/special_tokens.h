#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace trainyard::tokenizer {

/// Tokens that no text is encoded to, and what the files of a tokenizer's folder say of them.
struct SpecialTokens {
  std::map<int32_t, std::string> texts;  ///< how each is written
  std::optional<std::string> eos, bos;   ///< as the configuration has them
  std::string tokenizer_class;           ///< of tokenizer_config.json, "Fast" taken off; "" where it is not said
  int64_t extra_ids = 0;                 ///< T5's sentinels: <extra_id_{n-1}> first, behind the last piece
  std::string content;                   ///< the files read, for the fingerprint
};

/// Reads added_tokens.json, tokenizer_config.json and special_tokens_map.json of `folder`, as far as they are there.
/// Throws InputError, naming file and field.
SpecialTokens read_special_tokens(const std::filesystem::path& folder);

using FindToken = std::function<std::optional<int32_t>(const std::string& written)>;

/// The token that ends a document. The configured eos_token, except where that ends a turn of a chat (<|im_end|>,
/// <|eot_id|>) and the vocabulary has one for documents: that is what stands between documents in pre-training.
std::optional<int32_t> document_end(const SpecialTokens& special, const FindToken& find);

std::optional<int32_t> document_begin(const SpecialTokens& special, const FindToken& find);

}  // namespace trainyard::tokenizer
