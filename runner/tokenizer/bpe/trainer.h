#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tokenizer/text/borders.h"
#include "tokenizer/text/splitter.h"

namespace trainyard::tokenizer {

/// A byte-level BPE as it comes out of training, as the two files that Hugging Face `tokenizers` and transformers load.
struct TrainedBpe {
  int64_t vocab_size = 0;  ///< may be less than asked for, where the text has no pair left that stands in it twice
  std::string tokenizer_json;
  std::string tokenizer_config_json;
};

/// Learns a byte-level BPE: of all words (GPT-2's split pattern) the most frequent pair of neighbouring tokens becomes
/// a token, of equally frequent ones the pair of the lowest ids, until the vocabulary is full. Equal text in any order
/// and any division gives an equal result. Ids: 0 to 255 the bytes, then the pairs as they were found, last
/// <|endoftext|>. Memory grows with the number of different words, not with the text. Not thread-safe.
class BpeTrainer {
 public:
  static constexpr int64_t kSmallestVocab = 257;  ///< the bytes and the end of text

  BpeTrainer();

  /// Counts the words of `text`. Throws InputError where it is no UTF-8; `where` is what the message calls it.
  void add(std::string_view text, std::string_view where);

  /// Whether the words of `text` are those of its two parts where it is cut at `at`.
  [[nodiscard]] static bool is_border(std::string_view text, size_t at) { return is_between_words_or_lines(text, at); }

  /// Throws InputError where vocab_size is below kSmallestVocab or above kMaxVocab.
  [[nodiscard]] TrainedBpe train(int64_t vocab_size) const;

 private:
  Splitter splitter_;
  Splitter::Scratch scratch_;
  std::unordered_map<std::string, int64_t> words_;
};

}  // namespace trainyard::tokenizer
