#include <fmt/format.h>

#include "base/error.h"
#include "tokenizer/bpe_tokenizer.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/json_file.h"
#include "tokenizer/readers.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocabulary_reader.h"

namespace trainyard::tokenizer {
namespace {

/// merges.txt: an optional first line "#version: …", then two tokens a line.
void read_merges(const NamedContent& merges, VocabularyReader& vocabulary) {
  std::string_view left_to_read = merges.content;
  for (size_t line_number = 1; !left_to_read.empty(); ++line_number) {
    const size_t end = left_to_read.find('\n');
    std::string_view line = left_to_read.substr(0, end);
    left_to_read.remove_prefix(end == std::string_view::npos ? left_to_read.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (line_number == 1 && line.starts_with("#version"))) continue;
    const std::string where = fmt::format("{}:{}", merges.where, line_number);
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      throw InputError(fmt::format("{}: must be two tokens with one space between them", where));
    vocabulary.add_merge(std::string(line.substr(0, space)), std::string(line.substr(space + 1)), where);
  }
}

/// The classes whose slow form splits and normalises as Qwen2's does; all others with these two files follow GPT-2.
bool is_qwen2(const std::string& tokenizer_class) {
  return tokenizer_class == "Qwen2Tokenizer" || tokenizer_class == "Qwen3Tokenizer";
}

}  // namespace

std::unique_ptr<Tokenizer> read_vocab_and_merges(const NamedContent& vocab, const NamedContent& merges,
                                                 SpecialTokens special) {
  require_utf8(merges.content, merges.where);
  const auto parsed = parse_json(vocab.content, vocab.where);
  VocabularyReader reader(Field(parsed, vocab.where));
  read_merges(merges, reader);
  special.texts.insert(reader.unspelled().begin(), reader.unspelled().end());
  const bool qwen2 = is_qwen2(special.tokenizer_class);
  const std::string fingerprint =
      Fingerprint().add("vocab-merges 1").add(vocab.content).add(merges.content).add(special.content).hex();
  return std::make_unique<BpeTokenizer>(BpeParts{
      BpeModel(reader.take()), Splitter({{qwen2 ? kQwen2Pattern : kGpt2Pattern}}, vocab.where),
      qwen2 ? std::vector{Normalization::Nfc} : std::vector<Normalization>{}, false, std::move(special), fingerprint});
}

}  // namespace trainyard::tokenizer
