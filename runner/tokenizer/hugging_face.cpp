#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "tokenizer/bpe_tokenizer.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/json_file.h"
#include "tokenizer/readers.h"
#include "tokenizer/vocabulary_reader.h"

namespace trainyard::tokenizer {
namespace {

/// What pre_tokenizer says.
struct PreTokenizer {
  std::vector<SplitRule> rules;
  bool add_prefix_space = false;
  bool is_byte_level = false;
};

void read_normalizer(const Field& normalizer, std::vector<Normalization>& forms) {
  if (normalizer.is_null()) return;
  const std::string& type = normalizer.at("type").text();
  if (type == "Sequence") {
    const Field list = normalizer.at("normalizers");
    for (size_t i = 0; i < list.array().size(); ++i) read_normalizer(list.element(i), forms);
  } else if (type == "NFC") {
    forms.push_back(Normalization::Nfc);
  } else if (type == "NFD") {
    forms.push_back(Normalization::Nfd);
  } else if (type == "NFKC") {
    forms.push_back(Normalization::Nfkc);
  } else if (type == "NFKD") {
    forms.push_back(Normalization::Nfkd);
  } else {
    normalizer.at("type").fail("NFC, NFD, NFKC, NFKD or Sequence");
  }
}

SplitBehavior read_behavior(const Field& behavior) {
  const std::string& name = behavior.text();
  if (name == "Isolated") return SplitBehavior::Isolated;
  if (name == "Removed") return SplitBehavior::Removed;
  if (name == "MergedWithPrevious") return SplitBehavior::MergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::MergedWithNext;
  if (name == "Contiguous") return SplitBehavior::Contiguous;
  behavior.fail("Isolated, Removed, MergedWithPrevious, MergedWithNext or Contiguous");
}

SplitRule read_split(const Field& split) {
  const Field pattern = split.at("pattern");
  const Field regex = pattern.at("Regex");
  const bool is_literal = regex.is_null();
  return {is_literal ? pattern.at("String").text() : regex.text(),
          is_literal ? PatternSyntax::Literal : PatternSyntax::Oniguruma, read_behavior(split.at("behavior")),
          split.at("invert").flag(false)};
}

void read_pre_tokenizer(const Field& step, PreTokenizer& out) {
  if (step.is_null()) return;
  if (out.is_byte_level) throw InputError(fmt::format("{}: ByteLevel must be the last step", step.where()));
  const std::string& type = step.at("type").text();
  if (type == "Sequence") {
    const Field list = step.at("pretokenizers");
    for (size_t i = 0; i < list.array().size(); ++i) read_pre_tokenizer(list.element(i), out);
  } else if (type == "Split") {
    out.rules.push_back(read_split(step));
  } else if (type == "Digits") {
    out.rules.push_back({step.at("individual_digits").flag(false) ? R"(\p{N})" : R"(\p{N}+)"});
  } else if (type == "ByteLevel") {
    out.is_byte_level = true;
    out.add_prefix_space = step.at("add_prefix_space").flag(true);
    if (step.at("use_regex").flag(true)) out.rules.push_back({kGpt2Pattern});
  } else {
    step.at("type").fail("ByteLevel, Split, Digits or Sequence");
  }
}

void require_absent(const Field& field, const char* why) {
  const auto& value = field.value();
  const bool is_off = value.is_null() || value == false || value == "" || value == 0;
  if (!is_off) throw InputError(fmt::format("{}: {}", field.where(), why));
}

/// "left right" or ["left", "right"].
void read_merges(const Field& merges, VocabularyReader& vocabulary) {
  if (merges.is_null()) return;
  for (size_t i = 0; i < merges.array().size(); ++i) {
    const auto& merge = merges.value()[i];
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      vocabulary.add_merge(merge[0], merge[1], fmt::format("{}[{}]", merges.where(), i));
      continue;
    }
    const std::string& text = merges.element(i).text();
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
      merges.element(i).fail("two tokens with one space between them");
    vocabulary.add_merge(text.substr(0, space), text.substr(space + 1), fmt::format("{}[{}]", merges.where(), i));
  }
}

BpeModel read_model(const Field& model, SpecialTokens& special) {
  if (const Field type = model.at("type"); !type.is_null() && type.text() != "BPE")
    type.fail("BPE (for others give the original file: a SentencePiece model)");
  require_absent(model.at("byte_fallback"),
                 "byte fallback does not go with byte-level BPE; give the original SentencePiece file");
  require_absent(model.at("dropout"), "dropout makes encoding random; set it to null");
  require_absent(model.at("continuing_subword_prefix"), "not a byte-level BPE");
  require_absent(model.at("end_of_word_suffix"), "not a byte-level BPE");
  VocabularyReader reader(model.at("vocab"));
  read_merges(model.at("merges"), reader);
  special.texts.insert(reader.unspelled().begin(), reader.unspelled().end());
  BpeModel::Vocabulary vocabulary = reader.take();
  if (const Field unknown = model.at("unk_token"); !unknown.is_null()) {
    vocabulary.unknown = reader.find(unknown.text());
    if (!vocabulary.unknown)
      throw InputError(fmt::format("{}: '{}' is not in the vocabulary", unknown.where(), unknown.text()));
  }
  vocabulary.fuse_unknown = model.at("fuse_unk").flag(false);
  vocabulary.whole_piece = model.at("ignore_merges").flag(false) ? WholePiece::First : WholePiece::ByMerges;
  return BpeModel(std::move(vocabulary));
}

void read_added_tokens(const Field& added, SpecialTokens& special) {
  if (added.is_null()) return;
  for (size_t i = 0; i < added.array().size(); ++i) {
    const Field token = added.element(i);
    special.texts.insert_or_assign(token.at("id").token_id(), token.at("content").text());
  }
}

}  // namespace

std::unique_ptr<Tokenizer> read_hugging_face(std::string_view content, const std::string& where,
                                             SpecialTokens special) {
  const auto parsed = parse_json(content, where);
  const Field root(parsed, where);
  Fingerprint fingerprint;
  fingerprint.add("hugging-face 1").add(content).add(special.content);
  std::vector<Normalization> normalization;
  read_normalizer(root.at("normalizer"), normalization);
  PreTokenizer pre;
  read_pre_tokenizer(root.at("pre_tokenizer"), pre);
  if (std::ranges::any_of(pre.rules, runs_in_oniguruma)) fingerprint.add("oniguruma");  // it was PCRE2, with other ids
  if (!pre.is_byte_level)
    throw InputError(fmt::format(
        "{}: pre_tokenizer: no ByteLevel step: not a byte-level BPE; give the tokenizer's original file", where));
  BpeModel model = read_model(root.at("model"), special);
  read_added_tokens(root.at("added_tokens"), special);
  return std::make_unique<BpeTokenizer>(BpeParts{std::move(model), Splitter(pre.rules, where), std::move(normalization),
                                                 pre.add_prefix_space, std::move(special), fingerprint.hex()});
}

}  // namespace trainyard::tokenizer
