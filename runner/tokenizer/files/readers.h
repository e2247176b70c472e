#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/files/special_tokens.h"
#include "tokenizer/text/text_steps.h"
#include "tokenizer/tokenizer.h"

// One function a file format: content in, tokenizer out, no file system. `where` is what messages call the content.
// Each throws InputError for anything malformed, whatever the bytes.
namespace trainyard::tokenizer {

std::unique_ptr<Tokenizer> byte_tokenizer(SpecialTokensAre special);

/// tokenizer.json. Its added_tokens are joined with `special`, whose flags count where both have a token; a class that
/// steps_of_class() knows has steps of its own in place of the file's.
std::unique_ptr<Tokenizer> read_hugging_face(std::string_view content, const std::string& where, SpecialTokens special);

/// Whether a tokenizer.json splits text alike with each of two classes' steps before the model; none: with its own.
bool have_same_steps(std::string_view content, const std::string& where, const std::optional<TextSteps>& one,
                     const std::optional<TextSteps>& other);

struct NamedContent {
  std::string_view content;
  std::string where;
};
std::unique_ptr<Tokenizer> read_vocab_and_merges(const NamedContent& vocab, const NamedContent& merges,
                                                 SpecialTokens special);

/// The file holds ranks only; the split pattern and the special tokens are known by the number of ranks (Llama 3, Qwen,
/// cl100k_base), else Llama 3's pattern and the tokens of `special`.
std::unique_ptr<Tokenizer> read_tiktoken(std::string_view content, const std::string& where, SpecialTokens special);

std::unique_ptr<Tokenizer> read_sentencepiece(std::string_view content, const std::string& where,
                                              SpecialTokens special);

/// Whether the first line is tiktoken's `base64 rank`.
bool looks_like_tiktoken(std::string_view content);

}  // namespace trainyard::tokenizer
