#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "tokenizer/bpe/bpe_tokenizer.h"
#include "tokenizer/files/json_file.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/files/tokenizer_class.h"
#include "tokenizer/files/vocabulary_reader.h"
#include "tokenizer/fingerprint.h"

namespace trainyard::tokenizer {
namespace {

/// What tokenizer.json says of a text's way to the model.
struct FileSteps : TextSteps {
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

void read_pre_tokenizer(const Field& step, FileSteps& out) {
  if (step.is_null()) return;
  if (out.is_byte_level) throw InputError(fmt::format("{}: ByteLevel must be the last step", step.where()));
  const std::string& type = step.at("type").text();
  if (type == "Sequence") {
    const Field list = step.at("pretokenizers");
    for (size_t i = 0; i < list.array().size(); ++i) read_pre_tokenizer(list.element(i), out);
  } else if (type == "Split") {
    out.before.push_back(read_split(step));
  } else if (type == "Digits") {
    out.before.push_back({step.at("individual_digits").flag(false) ? R"(\p{N})" : R"(\p{N}+)"});
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
    if (text.starts_with("#version")) continue;  // a line of merges.txt that is none of its merges
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
      merges.element(i).fail("two tokens with one space between them");
    vocabulary.add_merge(text.substr(0, space), text.substr(space + 1), fmt::format("{}[{}]", merges.where(), i));
  }
}

VocabularyReader read_vocabulary(const Field& model) {
  if (const Field type = model.at("type"); !type.is_null() && type.text() != "BPE")
    type.fail("BPE (for others give the original file: a SentencePiece model)");
  require_absent(model.at("byte_fallback"),
                 "byte fallback does not go with byte-level BPE; give the original SentencePiece file");
  require_absent(model.at("dropout"), "dropout makes encoding random; set it to null");
  require_absent(model.at("continuing_subword_prefix"), "not a byte-level BPE");
  require_absent(model.at("end_of_word_suffix"), "not a byte-level BPE");
  VocabularyReader reader(model.at("vocab"));
  read_merges(model.at("merges"), reader);
  return reader;
}

BpeModel::Vocabulary with_options(BpeModel::Vocabulary vocabulary, const Field& model, const VocabularyReader& reader) {
  if (const Field unknown = model.at("unk_token"); !unknown.is_null()) {
    vocabulary.unknown = reader.find(unknown.text());
    if (!vocabulary.unknown) vocabulary.missing_unknown = unknown.text();
  }
  vocabulary.fuse_unknown = model.at("fuse_unk").flag(false);
  vocabulary.whole_piece = model.at("ignore_merges").flag(false) ? WholePiece::First : WholePiece::ByMerges;
  return vocabulary;
}

enum class Numbering { AsWritten, Anew };

/// The tokens of added_tokens by the ids that `tokenizers` gives them, whatever is written there: that of the
/// vocabulary, else one after another from its size on.
Numbering read_added_tokens(const Field& list, const VocabularyReader& vocabulary,
                            std::map<int32_t, AddedToken>& added) {
  Numbering numbering = Numbering::AsWritten;
  std::unordered_map<std::string, int32_t> ids;
  int64_t largest = -1;
  for (size_t i = 0; !list.is_null() && i < list.array().size(); ++i) {
    const int32_t written = list.element(i).at("id").token_id();
    const AddedToken token = read_added_token(list.element(i));
    if (token.content.empty()) continue;
    const auto next = static_cast<int32_t>(std::max(largest + 1, vocabulary.size()));
    const auto id = ids.emplace(token.content, vocabulary.find(token.content).value_or(next)).first->second;
    if (id >= kMaxVocab) list.element(i).fail(fmt::format("one of at most {} tokens", kMaxVocab));
    largest = std::max<int64_t>(largest, id);
    added[id] = token;
    if (id != written) numbering = Numbering::Anew;
  }
  return numbering;
}

/// Joins the tokens of the folder's files, whose flags count, with those of tokenizer.json, whose ids do.
std::map<int32_t, AddedToken> joined(std::map<int32_t, AddedToken> added, const std::map<int32_t, AddedToken>& folder,
                                     const VocabularyReader& vocabulary) {
  for (const auto& [stated, token] : folder) {
    const auto known = std::ranges::find(added, token.content,
                                         [](const auto& entry) -> const std::string& { return entry.second.content; });
    if (known != added.end())
      known->second = token;
    else
      added.emplace(vocabulary.find(token.content).value_or(stated), token);
  }
  return added;
}

/// Whether a text has other ids by `rule` than it had when Debian's Oniguruma alone said what punctuation is.
bool has_punct(const SplitRule& rule) {
  return runs_in_oniguruma(rule) && with_symbols_in_punct(rule.pattern) != rule.pattern;
}

/// The same of what a word is.
bool has_word(const SplitRule& rule) {
  return runs_in_oniguruma(rule) && with_signs_in_word(rule.pattern) != rule.pattern;
}

FileSteps read_steps(const Field& root) {
  FileSteps steps;
  read_normalizer(root.at("normalizer"), steps.normalization);
  read_pre_tokenizer(root.at("pre_tokenizer"), steps);
  if (!steps.is_byte_level)
    throw InputError(
        fmt::format("{}: pre_tokenizer: no ByteLevel step: not a byte-level BPE; give the tokenizer's original file",
                    root.where()));
  return steps;
}

/// They may be written in either syntax.
bool are_alike(TextSteps one, TextSteps other) {
  for (TextSteps* const steps : {&one, &other})
    for (SplitRule& rule : steps->before)
      if (rule.syntax == PatternSyntax::Oniguruma && !runs_in_oniguruma(rule)) rule.syntax = PatternSyntax::Pcre2;
  return one == other;
}

/// Whether a text has other ids by `steps` than it had when a class made none, and a space was put before the text
/// alone.
bool are_new(const TextSteps& steps, const TextSteps& of_file) {
  const bool is_before_pieces = steps.add_prefix_space && !steps.before.empty();
  return is_before_pieces || !are_alike(steps, of_file);
}

}  // namespace

std::unique_ptr<Tokenizer> read_hugging_face(std::string_view content, const std::string& where,
                                             SpecialTokens special) {
  const auto parsed = parse_json(content, where);
  const Field root(parsed, where);
  const FileSteps of_file = read_steps(root);
  VocabularyReader reader = read_vocabulary(root.at("model"));
  std::map<int32_t, AddedToken> added;
  const Numbering numbering = read_added_tokens(root.at("added_tokens"), reader, added);
  special.as_in_transformers =
      tokens_in_transformers(special.read_by_transformers, added, special.has_config ? class_of(special) : "");
  special.added = joined(std::move(added), special.added, reader);
  const auto of_class = special.has_config ? steps_of_class(special) : std::nullopt;
  const TextSteps steps = of_class.value_or(of_file);
  Fingerprint fingerprint;
  fingerprint.add("hugging-face 1").add(content).add(special.content);
  if (std::ranges::any_of(steps.before, runs_in_oniguruma)) fingerprint.add("oniguruma");  // it was PCRE2, with other ids
  if (std::ranges::any_of(steps.before, has_punct)) fingerprint.add("symbols in [:punct:]");
  if (std::ranges::any_of(steps.before, has_word)) fingerprint.add("signs in Word");
  if (are_new(steps, of_file)) fingerprint.add("steps of the class, a space before each piece");
  if (numbering == Numbering::Anew) fingerprint.add("added tokens numbered anew");
  if (has_other_tokens(special, [&](const std::string& written) { return reader.find(written); }))
    fingerprint.add("added tokens as in transformers");
  std::map<int32_t, std::string> unspelled = reader.unspelled();
  BpeModel::Vocabulary vocabulary = reader.take();
  if (!of_class) vocabulary = with_options(std::move(vocabulary), root.at("model"), reader);
  return std::make_unique<BpeTokenizer>(BpeParts{.model = BpeModel(std::move(vocabulary)),
                                                 .splitter = PieceSplitter(steps, where),
                                                 .normalization = steps.normalization,
                                                 .special = std::move(special),
                                                 .unspelled = std::move(unspelled),
                                                 .fingerprint = fingerprint.hex()});
}

bool have_same_steps(std::string_view content, const std::string& where, const std::optional<TextSteps>& one,
                     const std::optional<TextSteps>& other) {
  const auto parsed = parse_json(content, where);
  const FileSteps of_file = read_steps(Field(parsed, where));
  return are_alike(one.value_or(of_file), other.value_or(of_file));
}

}  // namespace trainyard::tokenizer
