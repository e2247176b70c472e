#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/word_cache.h"
#include "tokenizer/files/sentencepiece_model.h"

namespace trainyard::tokenizer {

/// The most probable division of a text under a unigram model (Viterbi), in float32, the first of equal paths kept, the
/// sum brought back to zero before it loses digits: as SentencePiece 0.2.3 has it. Debian's 0.1.97 does the last not
/// and divides some words of a long text otherwise. Immutable; a thread needs a Scratch of its own.
///
/// Where no piece goes on behind a word (T5's do not), a word is divided by itself, and what was found is kept for the
/// next of its kind, if it is so much better than the second best that no rounding of the sum before it can matter.
class Unigram {
  /// The best path to a position ends with a piece that begins at `begin`; -1 = none yet.
  struct Step {
    float score = 0;
    float runner_up = -std::numeric_limits<float>::infinity();  ///< the best of the other pieces that end here
    int32_t begin = -1;
    int32_t id = -1;
  };

 public:
  struct Scratch {
    WordCache cache;
    std::vector<Step> steps;
    std::vector<int32_t> ends;  ///< of the best path's pieces, the last first
  };

  explicit Unigram(const SentencePieceModel& model);

  /// Whether each word, with the U+2581 it begins with, is divided by itself.
  [[nodiscard]] bool divides_words() const { return divides_words_; }

  /// Ids of `normalized`, UTF-8 as the model's normaliser leaves it; neighbouring unknown characters are one id, unless
  /// the model spells them in bytes.
  [[nodiscard]] std::vector<int32_t> encode(std::string_view normalized, Scratch& scratch) const;

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
  struct Score {
    float value = 0;
    bool is_user_defined = false;
    bool is_unused = false;
  };
  /// What is carried from word to word.
  struct Path {
    float score = 0;
    bool after_unknown = false;
    std::vector<int32_t> ids;
  };

  void build_trie(const SentencePieceModel& model);
  [[nodiscard]] const Node* child(const Node& node, char byte) const;
  [[nodiscard]] float score_of(int32_t id, size_t bytes) const;
  /// Adds to `steps` the pieces that begin at `begin`; `reached` is the furthest end of any so far.
  void extend_from(std::string_view text, size_t begin, std::vector<Step>& steps, size_t& reached) const;
  [[nodiscard]] size_t end_of_word(std::string_view text, size_t begin) const;
  [[nodiscard]] bool find_known(std::string_view word, const Scratch& scratch, Path& path) const;
  void divide(std::string_view word, Scratch& scratch, Path& path) const;
  void append_best(std::string_view word, const Scratch& scratch, Path& path) const;
  [[nodiscard]] bool is_decided(std::string_view word, const Scratch& scratch) const;
  /// Whether the sum cannot come to be brought back to zero within `word`.
  [[nodiscard]] bool stays_small(float score, std::string_view word) const;
  void append_unknown(std::string_view text, std::vector<int32_t>& ids) const;

  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<Score> scores_;
  std::vector<int32_t> byte_ids_;  ///< 256, or none: no byte fallback
  float highest_, unknown_score_;
  float largest_;  ///< of all scores, without their signs
  int32_t unknown_id_;
  bool by_words_, divides_words_;
};

}  // namespace trainyard::tokenizer
