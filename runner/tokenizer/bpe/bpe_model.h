#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace trainyard::tokenizer {

/// No file may name a larger id: nothing is allocated by a number that a file merely states.
inline constexpr int64_t kMaxVocab = int64_t{1} << 22;

/// The two neighbours that become one token; what stands first in the list is joined first.
struct Merge {
  int32_t left, right, result;
};

enum class WholePiece {
  ByMerges,
  First
};  ///< First: a piece that is itself in the vocabulary is that token (tiktoken, ignore_merges)

/// Byte-pair encoding of one piece of text: its bytes are tokens, and the neighbours of the lowest rank, the leftmost
/// of equals, are joined until no two can be. Immutable; a thread needs a Scratch of its own.
class BpeModel {
 public:
  struct Vocabulary {
    std::vector<std::optional<std::string>> pieces;  ///< the bytes that an id stands for; none = no such id
    std::vector<std::pair<std::string, int32_t>> also;  ///< more bytes that come to an id, which stands for others
    std::array<int32_t, 256> byte_ids{};             ///< -1: this byte has no token and vanishes, or becomes `unknown`
    std::vector<Merge> merges;
    WholePiece whole_piece = WholePiece::ByMerges;
    std::optional<int32_t> unknown;
    std::string missing_unknown;  ///< the token that was to stand for unknown bytes, and is in no vocabulary
    bool fuse_unknown = false;  ///< neighbouring unknown bytes become one token
  };
  struct Scratch {
    struct Symbol {
      int32_t id, previous, next;  ///< neighbours by index, -1 = none; id -1 = joined into the one before
    };
    struct Candidate {
      uint32_t rank;
      int32_t at, result;
      bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;  ///< the best on top; some are out of date and skipped
  };

  /// `vocabulary` names ids of its own only.
  explicit BpeModel(Vocabulary vocabulary);
  BpeModel(BpeModel&&) = default;

  /// Appends the ids of `piece` to `ids`. Throws InputError where missing_unknown would have to stand for a byte. Time
  /// n log n in its length: a megabyte without a space is no trap.
  void encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;

  /// The bytes that `id` stands for; none where it stands for none.
  [[nodiscard]] const std::optional<std::string>& piece(int64_t id) const;
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(vocabulary_.pieces.size()); }
  /// The id of the token that is exactly these bytes; none where there is none.
  [[nodiscard]] std::optional<int32_t> find(std::string_view bytes) const;

 private:
  struct Joined {
    uint32_t rank;
    int32_t result;
  };
  /// A hash table with linear probing: one is looked up for every pair of neighbours of every new word.
  class MergeTable {
   public:
    explicit MergeTable(std::span<const Merge> merges);
    [[nodiscard]] const Joined* find(int32_t left, int32_t right) const;

   private:
    struct Slot {
      uint64_t pair;
      Joined joined;
    };
    std::vector<Slot> slots_;
    uint64_t mask_;
  };
  struct HashBytes {
    size_t operator()(std::string_view bytes) const;
  };

  void fill_symbols(std::string_view piece, std::vector<Scratch::Symbol>& symbols) const;
  void propose(int32_t at, Scratch& scratch) const;
  void join(const Scratch::Candidate& best, Scratch& scratch) const;

  Vocabulary vocabulary_;
  MergeTable merges_;
  std::unordered_map<std::string_view, int32_t, HashBytes> ids_;  ///< views into vocabulary_.pieces
};

}  // namespace trainyard::tokenizer
