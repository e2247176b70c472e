#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <optional>

#include "base/error.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/readers.h"
#include "tokenizer/sentencepiece_model.h"
#include "tokenizer/unigram.h"
#include "tokenizer/utf8.h"

namespace trainyard::tokenizer {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  ///< U+2581, how a piece writes a space

void require_ok(const sentencepiece::util::Status& status, const std::string& where) {
  if (!status.ok()) throw InputError(fmt::format("{}: {}", where, status.ToString()));
}

/// SentencePiece's library, and behind its pieces the tokens that the folder's configuration adds (T5's sentinels).
class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string_view content, const std::string& where, SpecialTokens special)
      : special_(std::move(special)) {
    const SentencePieceModel model = parse_sentencepiece(content, where);
    require_ok(model_.LoadFromSerializedProto({content.data(), content.size()}), where);
    if (model.kind == SentencePieceModel::Kind::Unigram) unigram_.emplace(model);
    fingerprint_ = Fingerprint().add("sentencepiece 1").add(content).add(special_.content).hex();
    for (int64_t i = 0; i < special_.extra_ids; ++i)
      special_.texts.emplace(pieces() + static_cast<int32_t>(i),
                             fmt::format("<extra_id_{}>", special_.extra_ids - 1 - i));
    special_.texts.erase(special_.texts.begin(), special_.texts.lower_bound(pieces()));  // the model has these itself
  }

  [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const override {
    require_utf8(text, "text");
    if (unigram_) return unigram_->encode(normalized(text));
    std::vector<int> ids;
    require_ok(model_.Encode({text.data(), text.size()}, &ids), "encode");
    return ids;
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
    for (size_t at = text.find(kSpace); at != std::string::npos; at = text.find(kSpace, at))
      text.replace(at, kSpace.size(), " ");
    return text.starts_with(' ') ? text.substr(1) : text;
  }

  sentencepiece::SentencePieceProcessor model_;
  std::optional<Unigram> unigram_;  ///< of a unigram model; the library then only normalises
  SpecialTokens special_;
  std::string fingerprint_;
};

}  // namespace

std::unique_ptr<Tokenizer> read_sentencepiece(std::string_view content, const std::string& where,
                                              SpecialTokens special) {
  return std::make_unique<SentencePieceTokenizer>(content, where, std::move(special));
}

}  // namespace trainyard::tokenizer
