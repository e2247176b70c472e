#pragma once

#include <array>
#include <string_view>

// The files that a tokenizer is kept in, by their names in a model's folder, on the hub and beside exported weights.
namespace trainyard::tokenizer {

/// One of these is a tokenizer by itself. The original files come first, as they are looked for in this order: beside a
/// SentencePiece model a tokenizer.json often is a conversion of it.
inline constexpr std::array<std::string_view, 4> kSingleFiles{"tokenizer.model", "spiece.model",
                                                              "sentencepiece.bpe.model", "tokenizer.json"};
/// These two belong together.
inline constexpr std::array<std::string_view, 2> kVocabAndMerges{"vocab.json", "merges.txt"};
/// What is read with either of them, and says nothing without it.
inline constexpr std::array<std::string_view, 3> kSettingFiles{"tokenizer_config.json", "special_tokens_map.json",
                                                               "added_tokens.json"};

}  // namespace trainyard::tokenizer
