#include "tokenizer/files/sentencepiece_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tokenizer/bpe/bpe_model.h"
#include "tokenizer/files/protobuf_reader.h"
#include "tokenizer/text/charsmap.h"

namespace trainyard::tokenizer {
namespace {

using Kind = SentencePieceModel::Kind;
using PieceType = SentencePieceModel::PieceType;

SentencePieceModel::Piece parse_piece(std::string_view message, const std::string& where) {
  SentencePieceModel::Piece piece;
  ProtobufReader fields(message, where);
  while (const auto field = fields.next()) {
    if (field->number == 1) piece.text = field->bytes;
    if (field->number == 2) piece.score = field->as_float();
    if (field->number == 3) {
      if (field->value < 1 || field->value > 6)
        throw InputError(fmt::format("{}: unknown piece type {}", where, field->value));
      piece.type = static_cast<PieceType>(field->value);
    }
  }
  if (piece.text.empty()) throw InputError(fmt::format("{}: the piece is empty", where));
  if (!std::isfinite(piece.score)) throw InputError(fmt::format("{}: the score is not a number", where));
  return piece;
}

void parse_trainer_spec(std::string_view message, const std::string& where, SentencePieceModel& model) {
  ProtobufReader fields(message, where);
  while (const auto field = fields.next()) {
    if (field->number == 3) {
      if (field->value < 1 || field->value > 4)
        throw InputError(fmt::format("{}: unknown model type {}", where, field->value));
      model.kind = static_cast<Kind>(field->value);
    }
    if (field->number == 24) model.treat_whitespace_as_suffix = field->value != 0;
    if (field->number == 35) model.byte_fallback = field->value != 0;
  }
}

void parse_charsmap(std::string_view message, const std::string& where, SentencePieceModel& model) {
  ProtobufReader fields(message, where);
  while (const auto field = fields.next())
    if (field->number == 2 && !field->bytes.empty()) model.charsmaps.push_back(field->bytes);
}

void parse_normalizer_spec(std::string_view message, const std::string& where, SentencePieceModel& model) {
  parse_charsmap(message, where, model);
  ProtobufReader fields(message, where);
  while (const auto field = fields.next()) {
    if (field->number == 2) model.normalizer_charsmap = field->bytes;
    if (field->number == 3) model.add_dummy_prefix = field->value != 0;
    if (field->number == 4) model.remove_extra_whitespaces = field->value != 0;
    if (field->number == 5) model.escape_whitespaces = field->value != 0;
  }
}

/// A space after anything but a space, or a line feed.
bool reaches_into_next_word(std::string_view piece) {
  while (piece.starts_with(kPieceSpace)) piece.remove_prefix(kPieceSpace.size());
  return piece.find(kPieceSpace) != std::string_view::npos || piece.find_first_of(" \n") != std::string_view::npos;
}

/// Walks over all of a character map (charsmap.h) that can be reached from the root of its trie.
class CharsmapCheck {
 public:
  CharsmapCheck(std::string_view map, const std::string& where) : where_(where) {
    uint32_t trie_bytes = 0;
    if (map.size() <= sizeof(trie_bytes)) fail("too short");
    std::memcpy(&trie_bytes, map.data(), sizeof(trie_bytes));
    map.remove_prefix(sizeof(trie_bytes));
    if (trie_bytes >= map.size() || trie_bytes == 0 || trie_bytes % sizeof(uint32_t) != 0) fail("the trie's size");
    units_.resize(trie_bytes / sizeof(uint32_t));
    std::memcpy(units_.data(), map.data(), trie_bytes);
    strings_ = map.substr(trie_bytes);
    if (strings_.back() != '\0') fail("the last string has no end");
  }

  void run() {
    keys_below_.assign(units_.size(), kUnknown);
    visit(0, 0);
  }

 private:
  static constexpr int8_t kUnknown = -1;
  static constexpr int kMaxKeys =
      32;  ///< on one path: the library keeps so many results of a search and reads as many as were found
  static constexpr int kMaxDepth = 256;  ///< published maps stay below 40; a cycle does not

  /// The most keys that end on one path from `at` on. Ends of keys are shared, so a unit may be come to by many ways.
  int visit(uint32_t at, int depth) {
    if (keys_below_[at] != kUnknown) return keys_below_[at];
    if (depth == kMaxDepth) fail("a cycle in the trie");
    const uint32_t unit = units_[at], base = at ^ Charsmap::offset(unit);
    if ((base | 0xFFU) >= units_.size()) fail("an offset outside the trie");
    const bool ends_key = Charsmap::ends_key(unit);
    if (ends_key && Charsmap::value(units_[base]) >= strings_.size()) fail("an offset outside the strings");
    int most = 0;
    for (uint32_t byte = 1; byte < 256; ++byte)
      if (Charsmap::label(units_[base ^ byte]) == byte) most = std::max(most, visit(base ^ byte, depth + 1));
    most += ends_key ? 1 : 0;
    if (most > kMaxKeys) fail("too many keys that begin alike");
    return keys_below_[at] = static_cast<int8_t>(most);
  }

  [[noreturn]] void fail(const char* what) const {
    throw InputError(fmt::format("{}: normalizer: precompiled_charsmap is damaged: {}", where_, what));
  }

  const std::string& where_;
  std::vector<uint32_t> units_;
  std::vector<int8_t> keys_below_;
  std::string_view strings_;
};

}  // namespace

SentencePieceModel parse_sentencepiece(std::string_view content, const std::string& where) {
  SentencePieceModel model;
  ProtobufReader fields(content, where);
  while (const auto field = fields.next()) {
    if (field->number == 1) {
      if (model.pieces.size() >= static_cast<size_t>(kMaxVocab))
        throw InputError(fmt::format("{}: more than {} pieces", where, kMaxVocab));
      model.pieces.push_back(parse_piece(field->bytes, fmt::format("{}: piece {}", where, model.pieces.size())));
      if (model.pieces.back().type == PieceType::Unknown)
        model.unknown_id = static_cast<int32_t>(model.pieces.size()) - 1;
    }
    if (field->number == 2) parse_trainer_spec(field->bytes, where, model);
    if (field->number == 3) parse_normalizer_spec(field->bytes, where, model);
    if (field->number == 5) parse_charsmap(field->bytes, where, model);
  }
  for (const std::string_view map : model.charsmaps) CharsmapCheck(map, where).run();
  return model;
}

bool words_are_independent(const SentencePieceModel& model) {
  return model.kind == Kind::Bpe && model.byte_fallback && model.charsmaps.empty() && model.add_dummy_prefix &&
         model.escape_whitespaces && !model.remove_extra_whitespaces && !model.treat_whitespace_as_suffix &&
         std::ranges::any_of(model.pieces, [](const auto& piece) { return piece.text == kPieceSpace; }) &&
         std::ranges::none_of(model.pieces, [](const auto& piece) { return reaches_into_next_word(piece.text); });
}

}  // namespace trainyard::tokenizer
