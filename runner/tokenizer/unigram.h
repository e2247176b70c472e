#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/sentencepiece_model.h"

namespace trainyard::tokenizer {

/// The most probable division of a text under a unigram model (Viterbi), in float32, the first of equal paths kept, the
/// sum brought back to zero before it loses digits: as SentencePiece 0.2.3 has it. Debian's 0.1.97 does the last not
/// and divides some words of a long text otherwise. Immutable; threads may use one at once.
class Unigram {
 public:
  explicit Unigram(const SentencePieceModel& model);

  /// Ids of `normalized`, UTF-8 as the model's normaliser leaves it; neighbouring unknown characters are one id, unless
  /// the model spells them in bytes.
  [[nodiscard]] std::vector<int32_t> encode(std::string_view normalized) const;

 private:
  /// A trie of the pieces; the edges of a node lie next to each other, in order of their byte.
  struct Node {
    uint32_t first_edge = 0, edges = 0;
    int32_t piece = -1;
  };
  struct Edge {
    unsigned char byte;
    uint32_t node;
  };
  /// The best path to a position ends with a piece that begins at `begin`; -1 = none yet.
  struct Step {
    float score = 0;
    int32_t begin = -1;
    int32_t id = -1;
  };
  struct Score {
    float value = 0;
    bool is_user_defined = false;
    bool is_unused = false;
  };

  void build_trie(const SentencePieceModel& model);
  [[nodiscard]] const Node* child(const Node& node, char byte) const;
  [[nodiscard]] float score_of(int32_t id, size_t bytes) const;
  /// Adds to `steps` the pieces that begin at `begin`; `reached` is the furthest end of any so far.
  void extend_from(std::string_view text, size_t begin, std::vector<Step>& steps, size_t& reached) const;
  void append_unknown(std::string_view text, std::vector<int32_t>& ids) const;

  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<Score> scores_;
  std::vector<int32_t> byte_ids_;  ///< 256, or none: no byte fallback
  float highest_, unknown_score_;
  int32_t unknown_id_;
};

}  // namespace trainyard::tokenizer
