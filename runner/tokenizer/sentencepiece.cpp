#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <memory>
#include <optional>

#include "base/error.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/readers.h"
#include "tokenizer/sentencepiece_model.h"
#include "tokenizer/sentencepiece_normalizer.h"
#include "tokenizer/unigram.h"
#include "tokenizer/utf8.h"
#include "tokenizer/word_cache.h"
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

/// Normalises a text and divides it.
class OwnUnigram {
 public:
  explicit OwnUnigram(const SentencePieceModel& model) : normalizer_(model), unigram_(model) {}

  [[nodiscard]] std::vector<int32_t> encode_after(std::string_view before, std::string_view text) const {
    const Workspaces<Unigram::Scratch>::Loan loan(*scratches_);
    return unigram_.encode(normalizer_.normalize(text, before), *loan);
  }

 private:
  SentencePieceNormalizer normalizer_;
  Unigram unigram_;
  std::unique_ptr<Workspaces<Unigram::Scratch>> scratches_ = std::make_unique<Workspaces<Unigram::Scratch>>();
};

/// SentencePiece's library, and behind its pieces the tokens that the folder's configuration adds (T5's sentinels).
class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string_view content, const std::string& where, SpecialTokens special)
      : special_(std::move(special)) {
    const SentencePieceModel model = parse_sentencepiece(content, where);
    require_ok(model_.LoadFromSerializedProto({content.data(), content.size()}), where);
    if (model.kind == SentencePieceModel::Kind::Unigram) unigram_.emplace(model);
    by_words_ = words_are_independent(model);
    fingerprint_ = Fingerprint().add("sentencepiece 1").add(content).add(special_.content).hex();
    for (int64_t i = 0; i < special_.extra_ids; ++i)
      special_.texts.emplace(pieces() + static_cast<int32_t>(i),
                             fmt::format("<extra_id_{}>", special_.extra_ids - 1 - i));
    special_.texts.erase(special_.texts.begin(), special_.texts.lower_bound(pieces()));  // the model has these itself
  }

  [[nodiscard]] std::vector<int32_t> encode_after(std::string_view before, std::string_view text) const override {
    require_utf8(text, "text");
    if (unigram_) return unigram_->encode_after(before, text);
    const bool is_worth_it = text.size() >= kWorthSplitting || !before.empty();
    return by_words_ && is_worth_it ? encode_words(before, text) : encode_whole(text);
  }

  [[nodiscard]] std::string decode(std::span<const int32_t> ids) const override {
    bool has_added = false;
    for (size_t at = 0; at < ids.size(); ++at) {
      const bool is_piece = ids[at] >= 0 && ids[at] < pieces();
      if (!is_piece && !special_.texts.contains(ids[at]))
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
    return special_.texts.empty() ? pieces() : special_.texts.rbegin()->first + 1;
  }
  [[nodiscard]] std::optional<int32_t> eos_id() const override { return id_or_none(model_.eos_id()); }
  [[nodiscard]] std::optional<int32_t> bos_id() const override { return id_or_none(model_.bos_id()); }
  [[nodiscard]] std::string fingerprint() const override { return fingerprint_; }

 private:
  [[nodiscard]] int32_t pieces() const { return model_.GetPieceSize(); }
  static std::optional<int32_t> id_or_none(int id) { return id < 0 ? std::nullopt : std::optional(id); }

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
    if (word.front() == ' ') return encode_whole(word.substr(1));
    const bool has_line_feed = word.front() == '\n';
    std::vector<int32_t> ids = encode_whole(has_line_feed ? std::string(word) : fmt::format("\n{}", word));
    ids.erase(ids.begin(), ids.begin() + (has_line_feed ? 1 : 2));
    return ids;
  }

  /// The text as transformers prints it: every token as it is written, the space in front of the text taken off.
  [[nodiscard]] std::string decode_with_added(std::span<const int32_t> ids) const {
    std::string text;
    for (const int32_t id : ids) text += id < pieces() ? model_.IdToPiece(id) : special_.texts.at(id);
    for (size_t at = text.find(kPieceSpace); at != std::string::npos; at = text.find(kPieceSpace, at))
      text.replace(at, kPieceSpace.size(), " ");
    return text.starts_with(' ') ? text.substr(1) : text;
  }

  sentencepiece::SentencePieceProcessor model_;
  std::optional<OwnUnigram> unigram_;  ///< of a unigram model; the library then only decodes
  bool by_words_ = false;
  std::unique_ptr<Workspaces<WordCache>> word_caches_ = std::make_unique<Workspaces<WordCache>>();
  SpecialTokens special_;
  std::string fingerprint_;
};

}  // namespace

std::unique_ptr<Tokenizer> read_sentencepiece(std::string_view content, const std::string& where,
                                              SpecialTokens special) {
  return std::make_unique<SentencePieceTokenizer>(content, where, std::move(special));
}

}  // namespace trainyard::tokenizer
