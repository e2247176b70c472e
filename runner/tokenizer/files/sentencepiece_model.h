#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::tokenizer {

/// What of a SentencePiece model file (protobuf message ModelProto of sentencepiece_model.proto) is needed here. Views
/// into the file's content.
struct SentencePieceModel {
  enum class Kind : int { Unigram = 1, Bpe = 2, Word = 3, Char = 4 };
  enum class PieceType : int { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };
  struct Piece {
    std::string_view text;
    float score = 0;
    PieceType type = PieceType::Normal;
  };
  Kind kind = Kind::Unigram;
  bool byte_fallback = false;
  std::vector<Piece> pieces;
  int32_t unknown_id = -1;
  std::vector<std::string_view> charsmaps;  ///< of normalizer and denormalizer, where they have one
  std::string_view normalizer_charsmap;     ///< "": none
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
  bool treat_whitespace_as_suffix = false;
};

/// How a piece writes a space: U+2581.
inline constexpr std::string_view kPieceSpace = "\xE2\x96\x81";

/// Whether a text's ids are those of its words, each with the spaces or the line feed before it: of byte-pair models
/// that change nothing in a text but its spaces, and of whose pieces none goes from a word on to what is behind it, as
/// Llama 2's. A space alone is then a piece.
bool words_are_independent(const SentencePieceModel& model);

/// Reads `content` and checks what the library takes on trust: it follows the offsets in a character map without
/// looking whether they stay inside. Throws InputError, beginning with `where`.
SentencePieceModel parse_sentencepiece(std::string_view content, const std::string& where);

}  // namespace trainyard::tokenizer
