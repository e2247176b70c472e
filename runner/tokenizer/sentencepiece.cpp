#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <optional>

#include "base/error.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/readers.h"
#include "tokenizer/sentencepiece_model.h"
#include "tokenizer/unigram.h"
#include "tokenizer/utf8.h"
#include "tokenizer/word_cache.h"

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

  [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const override {
    require_utf8(text, "text");
    if (unigram_) return unigram_->encode(normalized(text));
    return by_words_ && text.size() >= kWorthSplitting ? encode_words(text) : encode_whole(text);
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
  [[nodiscard]] std::vector<int32_t> encode_words(std::string_view text) const {
    size_t end = end_of_word(text, 0);
    std::vector<int32_t> ids = encode_whole(text.substr(0, end));
    WordCache cache;
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

  /// Of a word that begins with a space or a line feed. The library puts a space before whatever it is given: that is
  /// the word's own, or a token by itself, as nothing joins with a line feed.
  [[nodiscard]] std::vector<int32_t> encode_inner(std::string_view word) const {
    if (word.front() == ' ') return encode_whole(word.substr(1));
    std::vector<int32_t> ids = encode_whole(word);
    ids.erase(ids.begin());
    return ids;
  }

  /// `text` as the model's normaliser leaves it. The library tells that only by the pieces it makes of it.
  [[nodiscard]] std::string normalized(std::string_view text) const {
    sentencepiece::ImmutableSentencePieceText pieces_of_text;
    require_ok(model_.Encode({text.data(), text.size()}, pieces_of_text.mutable_proto()), "encode");
    std::string out;
    out.reserve(text.size() + text.size() / 2);
    for (size_t i = 0; i < pieces_of_text.pieces_size(); ++i) {
      const auto piece = pieces_of_text.pieces(static_cast<int>(i));
      if (model_.IsByte(static_cast<int>(piece.id())))
        out += byte_written(piece.piece());
      else
        out += piece.piece();
    }
    return out;
  }

  /// "<0xE3>" is one byte.
  static char byte_written(const std::string& piece) {
    return static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16));
  }

  /// As transformers prints them: every token as it is written, the space in front of the text taken off.
  [[nodiscard]] std::string decode_with_added(std::span<const int32_t> ids) const {
    std::string text;
    for (const int32_t id : ids) text += id < pieces() ? model_.IdToPiece(id) : special_.texts.at(id);
    for (size_t at = text.find(kPieceSpace); at != std::string::npos; at = text.find(kPieceSpace, at))
      text.replace(at, kPieceSpace.size(), " ");
    return text.starts_with(' ') ? text.substr(1) : text;
  }

  sentencepiece::SentencePieceProcessor model_;
  std::optional<Unigram> unigram_;  ///< of a unigram model; the library then only normalises
  bool by_words_ = false;
  SpecialTokens special_;
  std::string fingerprint_;
};

}  // namespace

std::unique_ptr<Tokenizer> read_sentencepiece(std::string_view content, const std::string& where,
                                              SpecialTokens special) {
  return std::make_unique<SentencePieceTokenizer>(content, where, std::move(special));
}

}  // namespace trainyard::tokenizer
