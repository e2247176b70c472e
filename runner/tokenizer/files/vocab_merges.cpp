#include <fmt/format.h>

#include <map>
#include <utility>

#include "base/error.h"
#include "tokenizer/bpe/bpe_tokenizer.h"
#include "tokenizer/files/json_file.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/files/tokenizer_class.h"
#include "tokenizer/files/vocabulary_reader.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::tokenizer {
namespace {

/// merges.txt: two tokens a line; a line that begins with "#version" is none of the merges.
void read_merges(const NamedContent& merges, VocabularyReader& vocabulary) {
  std::string_view left_to_read = merges.content;
  for (size_t line_number = 1; !left_to_read.empty(); ++line_number) {
    const size_t end = left_to_read.find('\n');
    std::string_view line = left_to_read.substr(0, end);
    left_to_read.remove_prefix(end == std::string_view::npos ? left_to_read.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    const std::string where = fmt::format("{}:{}", merges.where, line_number);
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      throw InputError(fmt::format("{}: must be two tokens with one space between them", where));
    vocabulary.add_merge(std::string(line.substr(0, space)), std::string(line.substr(space + 1)), where);
  }
}

constexpr const char* kUsualEnd = "<|endoftext|>";  ///< has a role by default in each class
constexpr std::string_view kEndOfWord = "</w>";

/// Tokens that end words with a sign of their own are spelled in characters, and no byte level.
void refuse_end_of_word(const Field& vocab) {
  for (const auto& [written, id] : vocab.object().items())
    if (written.size() > kEndOfWord.size() && written.ends_with(kEndOfWord))
      throw InputError(
          fmt::format("{}: the token '{}' ends a word by '{}', as those of CLIP and GPT-1 do: not a "
                      "byte-level BPE, and not supported",
                      vocab.where(), written, kEndOfWord));
}

/// Without a class and a family that has one a folder of these two files is GPT-2's; Qwen3's slow form is Qwen2's.
TextSteps steps_of(SpecialTokens& special) {
  if (special.tokenizer_class == "Qwen3Tokenizer") special.tokenizer_class = "Qwen2Tokenizer";
  const auto of_class = steps_of_class(special);
  return of_class.value_or(
      TextSteps{.rules = {{kGpt2Pattern}}, .add_prefix_space = special.add_prefix_space.value_or(false)});
}

/// What was done before classes other than Qwen's and the key add_prefix_space counted.
TextSteps older_steps_of(const SpecialTokens& special) {
  if (special.tokenizer_class == "Qwen2Tokenizer")
    return {.normalization = {Normalization::Nfc}, .before = {{kQwen2Pattern}}};
  return {.rules = {{kGpt2Pattern}}};
}

}  // namespace

std::unique_ptr<Tokenizer> read_vocab_and_merges(const NamedContent& vocab, const NamedContent& merges,
                                                 SpecialTokens special) {
  require_utf8(merges.content, merges.where);
  const auto parsed = parse_json(vocab.content, vocab.where);
  const Field tokens(parsed, vocab.where);
  refuse_end_of_word(tokens);
  VocabularyReader reader(tokens);
  read_merges(merges, reader);
  special.named.emplace(kUsualEnd, AddedToken{.content = kUsualEnd, .special = true});
  special.read_by_transformers.roles.emplace(kUsualEnd, WrittenToken{special.named.at(kUsualEnd)});
  const TextSteps steps = steps_of(special);
  special.as_in_transformers = tokens_in_transformers(special.read_by_transformers, {}, class_of(special));
  Fingerprint fingerprint;
  fingerprint.add("vocab-merges 1").add(vocab.content).add(merges.content).add(special.content);
  if (steps != older_steps_of(special)) fingerprint.add("steps of the class, a space before each piece");
  if (has_other_tokens(special, [&](const std::string& written) { return reader.find(written); }))
    fingerprint.add("added tokens as in transformers");
  std::map<int32_t, std::string> unspelled = reader.unspelled();
  return std::make_unique<BpeTokenizer>(BpeParts{.model = BpeModel(reader.take()),
                                                 .splitter = PieceSplitter(steps, vocab.where),
                                                 .normalization = steps.normalization,
                                                 .special = std::move(special),
                                                 .unspelled = std::move(unspelled),
                                                 .fingerprint = fingerprint.hex()});
}

}  // namespace trainyard::tokenizer
