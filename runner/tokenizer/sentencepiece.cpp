#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <memory>
#include <optional>

#include "base/error.h"
#include "tokenizer/bpe/word_cache.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/files/sentencepiece_model.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/text/added_tokens.h"
#include "tokenizer/text/borders.h"
#include "tokenizer/text/sentencepiece_normalizer.h"
#include "tokenizer/text/utf8.h"
#include "tokenizer/unigram.h"
#include "tokenizer/workspaces.h"

namespace trainyard::tokenizer {
namespace {

// A text of fewer bytes goes to the library whole: it would not pay for a cache of its words.
constexpr size_t kWorthSplitting = 4096;

void require_ok(const sentencepiece::util::Status& status, const std::string& where) {
  if (!status.ok()) throw InputError(fmt::format("{}: {}", where, status.ToString()));
}

/// Where the word that begins at `begin` ends: before a line feed or a space, unless that follows another space or only
/// spaces follow it.
size_t end_of_word(std::string_view text, size_t begin) {
  for (size_t at = begin + 1; (at = text.find_first_of(" \n", at)) != std::string_view::npos; ++at) {
    const std::string_view before = text.substr(0, at);
    if (before.ends_with(' ') || before.ends_with(kPieceSpace)) continue;  // written out, the latter is a space itself
    if (text[at] == '\n' || text.find_first_not_of(' ', at) != std::string_view::npos) return at;
  }
  return text.size();
}

/// Whether a word ends at `at`, in whatever stands around.
bool ends_word(std::string_view text, size_t at) {
  return is_between_words_or_lines(text, at) && !text.substr(0, at).ends_with(kPieceSpace);
}

/// Normalises a text and divides it.
class OwnUnigram {
 public:
  explicit OwnUnigram(const SentencePieceModel& model) : normalizer_(model), unigram_(model) {}

  [[nodiscard]] std::vector<int32_t> encode_after(std::string_view before, std::string_view text) const {
    const Workspaces<Unigram::Scratch>::Loan loan(*scratches_);
    return unigram_.encode(normalizer_.normalize(text, before), *loan);
  }

  [[nodiscard]] bool is_border(std::string_view document, size_t at) const {
    return unigram_.divides_words() && normalizer_.is_border(document, at);
  }

 private:
  SentencePieceNormalizer normalizer_;
  Unigram unigram_;
  std::unique_ptr<Workspaces<Unigram::Scratch>> scratches_ = std::make_unique<Workspaces<Unigram::Scratch>>();
};

/// A model that puts no space before a text: what comes later of a protobuf message counts.
std::string without_prefix(std::string_view content) {
  constexpr std::string_view kNormalizerSpec = "\x1A\x02", kNoDummyPrefix("\x18\x00", 2);
  return std::string(content).append(kNormalizerSpec).append(kNoDummyPrefix);
}

/// Pieces that no text is encoded to, but those that are read as special tokens.
bool is_special(SentencePieceModel::PieceType type) {
  return type == SentencePieceModel::PieceType::Control || type == SentencePieceModel::PieceType::Unknown;
}

/// SentencePiece's library, and behind its pieces the tokens that the folder's configuration adds (T5's sentinels).
///
/// Behind an added token a text goes on, without a space of its own; with a unigram model, or where the configuration
/// says `legacy`, it begins anew. So transformers has it.
class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string_view content, const std::string& where, SpecialTokens special)
      : special_(std::move(special)) {
    SentencePieceModel model = parse_sentencepiece(content, where);
    const bool is_unigram = model.kind == SentencePieceModel::Kind::Unigram;
    const bool drops_prefix = !is_unigram && model.add_dummy_prefix && !special_.add_prefix_space.value_or(true);
    if (drops_prefix) model.add_dummy_prefix = false;
    load(model_, drops_prefix ? without_prefix(content) : std::string(content), where);
    if (is_unigram) unigram_.emplace(model);
    by_words_ = words_are_independent(model);
    Fingerprint fingerprint;
    fingerprint.add("sentencepiece 1").add(content).add(special_.content);
    if (drops_prefix) fingerprint.add("no space before the text");
    fingerprint_ = fingerprint.hex();
    take_tokens(model);
    begins_behind_token_ = is_unigram || (special_.legacy && model.add_dummy_prefix);
    if (!added_.is_idle() && !begins_behind_token_ && !by_words_) {
      inner_ = std::make_unique<sentencepiece::SentencePieceProcessor>();
      load(*inner_, without_prefix(content), where);
    }
  }

  [[nodiscard]] std::vector<int32_t> encode_after(std::string_view before, std::string_view text) const override {
    require_utf8(text, "text");
    if (added_.is_idle()) return encode_text(before, text);
    std::vector<int32_t> ids;
    bool is_behind_token = false;
    added_.split(text, [&](std::string_view part, std::optional<int32_t> token) {
      if (token) {
        is_behind_token = true;
        return ids.push_back(*token);
      }
      const auto some = is_behind_token ? encode_behind_token(part) : encode_text(before, part);
      ids.insert(ids.end(), some.begin(), some.end());
    });
    return ids;
  }
  [[nodiscard]] Added sought() const override { return added_.sought(); }
  [[nodiscard]] Added found_in(std::string_view text) const override { return added_.found_in(text); }

  [[nodiscard]] bool is_border(std::string_view document, size_t at) const override {
    const bool is_between = unigram_ ? unigram_->is_border(document, at) : by_words_ && ends_word(document, at);
    return is_between && added_.are_clear_of_border(document, at);
  }

  [[nodiscard]] std::string decode(std::span<const int32_t> ids) const override {
    bool has_added = false;
    for (size_t at = 0; at < ids.size(); ++at) {
      const bool is_piece = ids[at] >= 0 && ids[at] < pieces();
      if (!is_piece && !special_.added.contains(ids[at]))
        throw InputError(fmt::format("decode: id {} at position {} stands for nothing; ids run from 0 to {}", ids[at],
                                     at, vocab_size() - 1));
      has_added |= !is_piece;
    }
    if (has_added) return decode_with_added(ids);
    std::string text;
    require_ok(model_.Decode(std::vector<int>(ids.begin(), ids.end()), &text), "decode");
    return text;
  }

  [[nodiscard]] int64_t vocab_size() const override {
    return special_.added.empty() ? pieces() : special_.added.rbegin()->first + 1;
  }
  [[nodiscard]] std::optional<int32_t> eos_id() const override { return eos_; }
  [[nodiscard]] std::optional<int32_t> bos_id() const override { return bos_; }
  [[nodiscard]] std::string fingerprint() const override { return fingerprint_; }

 private:
  [[nodiscard]] int32_t pieces() const { return model_.GetPieceSize(); }
  static std::optional<int32_t> id_or_none(int id) { return id < 0 ? std::nullopt : std::optional(id); }

  static void load(sentencepiece::SentencePieceProcessor& model, const std::string& content, const std::string& where) {
    require_ok(model.LoadFromSerializedProto(content), where);
  }

  void take_tokens(const SentencePieceModel& model) {
    for (int64_t i = 0; i < special_.extra_ids; ++i)
      special_.added.emplace(
          pieces() + static_cast<int32_t>(i),
          AddedToken{.content = fmt::format("<extra_id_{}>", special_.extra_ids - 1 - i), .special = true});
    for (const auto& piece : model.pieces)
      if (is_special(piece.type))
        special_.named.emplace(piece.text, AddedToken{.content = std::string(piece.text), .special = true});
    const auto find = [this](const std::string& written) { return find_token(written); };
    added_ = AddedTokens(tokens_in_text(special_, find), {}, special_.in_text);
    eos_ = special_.eos ? document_end(special_, find) : id_or_none(model_.eos_id());
    bos_ = special_.bos ? document_begin(special_, find) : id_or_none(model_.bos_id());
    special_.added.erase(special_.added.begin(), special_.added.lower_bound(pieces()));  // the model has these itself
  }

  [[nodiscard]] std::optional<int32_t> find_token(const std::string& written) const {
    for (const auto& [id, token] : special_.added)
      if (token.content == written) return id;
    const int id = model_.PieceToId(written);
    return model_.IdToPiece(id) == written ? std::optional(id) : std::nullopt;
  }

  [[nodiscard]] std::vector<int32_t> encode_text(std::string_view before, std::string_view text) const {
    if (unigram_) return unigram_->encode_after(before, text);
    const bool is_worth_it = text.size() >= kWorthSplitting || !before.empty();
    return by_words_ && is_worth_it ? encode_words(before, text) : encode_whole(text);
  }

  [[nodiscard]] std::vector<int32_t> encode_behind_token(std::string_view text) const {
    if (unigram_) return encode_text("", text);
    if (text == " ") return space();
    if (begins_behind_token_) return encode_text("", text.starts_with(' ') ? text.substr(1) : text);
    if (by_words_) return encode_words("\n", text);
    std::vector<int> ids;
    require_ok(inner_->Encode({text.data(), text.size()}, &ids), "encode");
    return ids;
  }

  /// The ids of a space alone. Of the empty text that is left where its own is taken for the library's, that makes none.
  [[nodiscard]] std::vector<int32_t> space() const { return {model_.PieceToId(std::string(kPieceSpace))}; }

  [[nodiscard]] std::vector<int32_t> encode_whole(std::string_view text) const {
    std::vector<int> ids;
    require_ok(model_.Encode({text.data(), text.size()}, &ids), "encode");
    return ids;
  }

  /// The library joins the pairs of a whole text far slower than known words are looked up.
  [[nodiscard]] std::vector<int32_t> encode_words(std::string_view before, std::string_view text) const {
    if (text.empty()) return {};
    size_t end = end_of_word(text, 0);
    const std::string_view first = text.substr(0, end);
    std::vector<int32_t> ids = before.empty() ? encode_whole(first) : encode_inner(first);
    const Workspaces<WordCache>::Loan loan(*word_caches_);
    WordCache& cache = *loan;
    for (size_t begin = end; begin < text.size(); begin = end) {
      end = end_of_word(text, begin);
      const std::string_view word = text.substr(begin, end - begin);
      if (cache.find(word, ids)) continue;
      const std::vector<int32_t> of_word = encode_inner(word);
      ids.insert(ids.end(), of_word.begin(), of_word.end());
      cache.keep(word, of_word);
    }
    return ids;
  }

  /// The ids of a word within a text. The library puts a space before whatever it is given: that is the word's own, or
  /// a token by itself, as nothing joins with the line feed that comes next.
  [[nodiscard]] std::vector<int32_t> encode_inner(std::string_view word) const {
    if (word == " ") return space();
    if (word.front() == ' ') return encode_whole(word.substr(1));
    const bool has_line_feed = word.front() == '\n';
    std::vector<int32_t> ids = encode_whole(has_line_feed ? std::string(word) : fmt::format("\n{}", word));
    ids.erase(ids.begin(), ids.begin() + (has_line_feed ? 1 : 2));
    return ids;
  }

  /// The text as transformers prints it: every token as it is written, the space in front of the text taken off.
  [[nodiscard]] std::string decode_with_added(std::span<const int32_t> ids) const {
    std::string text;
    for (const int32_t id : ids) text += id < pieces() ? model_.IdToPiece(id) : special_.added.at(id).content;
    for (size_t at = text.find(kPieceSpace); at != std::string::npos; at = text.find(kPieceSpace, at))
      text.replace(at, kPieceSpace.size(), " ");
    return text.starts_with(' ') ? text.substr(1) : text;
  }

  sentencepiece::SentencePieceProcessor model_;
  std::optional<OwnUnigram> unigram_;  ///< of a unigram model; the library then only decodes
  bool by_words_ = false;
  std::unique_ptr<Workspaces<WordCache>> word_caches_ = std::make_unique<Workspaces<WordCache>>();
  std::unique_ptr<sentencepiece::SentencePieceProcessor> inner_;  ///< puts no space before a text
  SpecialTokens special_;
  AddedTokens added_;
  bool begins_behind_token_ = false;
  std::optional<int32_t> eos_, bos_;
  std::string fingerprint_;
};

}  // namespace

std::unique_ptr<Tokenizer> read_sentencepiece(std::string_view content, const std::string& where,
                                              SpecialTokens special) {
  return std::make_unique<SentencePieceTokenizer>(content, where, std::move(special));
}

}  // namespace trainyard::tokenizer
