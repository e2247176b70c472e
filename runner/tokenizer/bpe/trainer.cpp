#include "tokenizer/bpe/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "tokenizer/bpe/bpe_model.h"
#include "tokenizer/bpe/pair_counts.h"
#include "tokenizer/text/byte_level.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::tokenizer {
namespace {
using nlohmann::ordered_json;

constexpr size_t kMaxWordBytes = 256;  ///< longer words (a megabyte without a space) are counted in pieces
constexpr const char* kEndOfText = "<|endoftext|>";

struct Learned {
  std::vector<std::string> tokens;  ///< bytes, by id
  std::vector<Pair> merges;
};

Learned learn(PairCounts& counts, int64_t tokens_wanted) {
  Learned learned;
  for (int byte = 0; byte < 256; ++byte) learned.tokens.emplace_back(1, static_cast<char>(byte));
  while (static_cast<int64_t>(learned.tokens.size()) < tokens_wanted) {
    const auto pair = counts.best();
    if (!pair) break;
    counts.join(*pair, static_cast<int32_t>(learned.tokens.size()));
    learned.tokens.push_back(learned.tokens[static_cast<size_t>(pair->first)] +
                             learned.tokens[static_cast<size_t>(pair->second)]);
    learned.merges.push_back(*pair);
  }
  return learned;
}

ordered_json end_of_text_token() {
  return {{"content", kEndOfText}, {"single_word", false}, {"lstrip", false},
          {"rstrip", false},       {"normalized", false},  {"special", true}};
}

std::string tokenizer_json(const Learned& learned) {
  ordered_json vocab = ordered_json::object(), merges = ordered_json::array();
  const auto written = [&](int32_t id) { return to_byte_level(learned.tokens[static_cast<size_t>(id)]); };
  // push_back on the underlying list: operator[] of an ordered object looks through all of it each time.
  auto& members = vocab.get_ref<ordered_json::object_t&>();
  for (size_t id = 0; id < learned.tokens.size(); ++id) members.push_back({to_byte_level(learned.tokens[id]), id});
  for (const auto& [left, right] : learned.merges) merges.push_back(written(left) + " " + written(right));
  ordered_json end_of_text{{"id", learned.tokens.size()}};
  end_of_text.update(end_of_text_token());
  const ordered_json byte_level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  const ordered_json whole{{"version", "1.0"},
                           {"truncation", nullptr},
                           {"padding", nullptr},
                           {"added_tokens", ordered_json::array({end_of_text})},
                           {"normalizer", nullptr},
                           {"pre_tokenizer", byte_level},
                           {"post_processor", nullptr},
                           {"decoder", byte_level},
                           {"model",
                            {{"type", "BPE"},
                             {"dropout", nullptr},
                             {"unk_token", nullptr},
                             {"continuing_subword_prefix", nullptr},
                             {"end_of_word_suffix", nullptr},
                             {"fuse_unk", false},
                             {"byte_fallback", false},
                             {"ignore_merges", false},
                             {"vocab", vocab},
                             {"merges", merges}}}};
  return whole.dump(1) + "\n";
}

std::string tokenizer_config_json(size_t end_of_text) {
  ordered_json decoder = ordered_json::object();
  decoder[std::to_string(end_of_text)] = end_of_text_token();
  const ordered_json whole{{"added_tokens_decoder", decoder},
                           {"bos_token", nullptr},
                           {"eos_token", kEndOfText},
                           {"clean_up_tokenization_spaces", false},
                           {"tokenizer_class", "PreTrainedTokenizerFast"}};
  return whole.dump(1) + "\n";
}

}  // namespace

BpeTrainer::BpeTrainer() : splitter_({{kGpt2Pattern}}, "trainer") {}

void BpeTrainer::add(std::string_view text, std::string_view where) {
  require_utf8(text, where);
  splitter_.split(text, scratch_, [&](std::string_view word) {
    for (; !word.empty(); word.remove_prefix(std::min(word.size(), kMaxWordBytes)))
      ++words_[std::string(word.substr(0, kMaxWordBytes))];
  });
}

TrainedBpe BpeTrainer::train(int64_t vocab_size) const {
  if (vocab_size < kSmallestVocab || vocab_size > kMaxVocab)
    throw InputError(fmt::format("vocabulary size {}: must be from {} (the bytes and the end of text) to {}",
                                 vocab_size, kSmallestVocab, kMaxVocab));
  PairCounts counts;
  for (const auto& [word, times] : words_) counts.add(word, times);
  counts.start();
  const Learned learned = learn(counts, vocab_size - 1);
  return {static_cast<int64_t>(learned.tokens.size()) + 1, tokenizer_json(learned),
          tokenizer_config_json(learned.tokens.size())};
}

}  // namespace trainyard::tokenizer
