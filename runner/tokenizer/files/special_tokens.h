#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/files/json_file.h"
#include "tokenizer/text/token_finder.h"
#include "tokenizer/tokenizer.h"

namespace trainyard::tokenizer {

using TokensByContent = std::map<std::string, AddedToken>;

/// A token as a file writes it.
struct WrittenToken {
  AddedToken token;
  bool has_normalized = true;  ///< else `normalized` is what follows from `special`
};

/// What transformers' AutoTokenizer reads of the files beside the vocabulary: with an added_tokens_decoder it passes
/// over added_tokens.json and special_tokens_map.json.
struct ReadByTransformers {
  bool has_decoder = false;
  std::map<std::string, WrittenToken> added;  ///< of added_tokens_decoder, else of added_tokens.json
  std::map<std::string, WrittenToken> roles;  ///< that have a role, as eos_token has
  TokensByContent extra;                      ///< of additional_special_tokens and extra_special_tokens
};

/// What the files of a tokenizer's folder say beside its vocabulary.
struct SpecialTokens {
  std::map<int32_t, AddedToken> added;  ///< by id
  std::map<std::string, AddedToken>
      named;                             ///< that have a role, as eos_token has; special, whatever else is said of them
  std::optional<std::string> eos, bos;   ///< as the configuration has them
  std::string eos_where;                 ///< what messages call eos: "tokenizer_config.json: eos_token"
  bool has_config = false;               ///< tokenizer_config.json is there
  std::string tokenizer_class;           ///< of that, else of config.json, "Fast" taken off; "" where it is not said
  std::optional<bool> add_prefix_space;  ///< of tokenizer_config.json
  bool legacy = false;                   ///< of tokenizer_config.json: behind an added token a text begins anew
  std::string model_type;                ///< of config.json; "" where it is not said
  int64_t extra_ids = 0;                 ///< T5's sentinels: <extra_id_{n-1}> first, behind the last piece
  std::string content;                   ///< the files read, for the fingerprint
  SpecialTokensAre in_text = SpecialTokensAre::Text;
  ReadByTransformers read_by_transformers;
  std::optional<TokensByContent> as_in_transformers;  ///< what tokens_in_text() gives; none: as `added` and `named` say
};

/// Reads added_tokens.json, tokenizer_config.json and special_tokens_map.json of `folder`, as far as they are there,
/// and which family config.json is of. Throws InputError, naming file and field.
SpecialTokens read_special_tokens(const std::filesystem::path& folder, SpecialTokensAre in_text);

/// The tokens to look for in text, with their flags, as transformers' AutoTokenizer has them: those of `of_file`, which
/// are tokenizer.json's, under those of the folder's files. `class_name`: the class that it makes anew (class_of()); ""
/// where it takes the file's.
TokensByContent tokens_in_transformers(const ReadByTransformers& read, const std::map<int32_t, AddedToken>& of_file,
                                       std::string_view class_name);

/// A token as JSON has it: {"content": …, "lstrip": …}. Without `normalized` it is looked for in normalised text unless
/// it is special.
AddedToken read_added_token(const Field& token);

using FindToken = std::function<std::optional<int32_t>(const std::string& written)>;

/// Whether some text has other tokens by as_in_transformers than by `added` and `named`, which counted before. `find`
/// is for those of the vocabulary.
bool has_other_tokens(const SpecialTokens& special, const FindToken& find);

/// The tokens to look for in text: those that were added, and those with a role that `find` knows.
std::map<int32_t, AddedToken> tokens_in_text(const SpecialTokens& special, const FindToken& find);

/// The token that ends a document. The configured eos_token, except where that ends a turn of a chat (<|im_end|>,
/// <|eot_id|>) and the vocabulary has one for documents: that is what stands between documents in pre-training.
/// Throws InputError where the configured one is in no vocabulary.
std::optional<int32_t> document_end(const SpecialTokens& special, const FindToken& find);

std::optional<int32_t> document_begin(const SpecialTokens& special, const FindToken& find);

}  // namespace trainyard::tokenizer
