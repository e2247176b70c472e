#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace trainyard::tokenizer {

using Pair = std::pair<int32_t, int32_t>;

/// The words of a corpus as tokens, and how often which two stand next to each other, kept up to date while pairs are
/// joined.
class PairCounts {
 public:
  /// `word` begins as its bytes, which are the ids 0 to 255. After the last one call start().
  void add(std::string_view word, int64_t times);
  void start();

  /// The pair that is next to be joined: the most frequent, of those the lowest; none where none occurs twice.
  [[nodiscard]] std::optional<Pair> best();

  /// Makes `pair` the token `id` everywhere.
  void join(Pair pair, int32_t id);

 private:
  struct Word {
    std::vector<int32_t> tokens;
    int64_t times;
  };
  struct Candidate {
    int64_t count;
    Pair pair;
    /// The order of a heap that has the best on top.
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };
  struct Hash {
    size_t operator()(const Pair& pair) const;
  };
  struct Occurrences {
    int64_t count = 0;
    std::vector<uint32_t> words;  ///< where it is, and some where it no longer is; each once or more
    void remember(uint32_t word) {
      if (words.empty() || words.back() != word) words.push_back(word);
    }
  };

  void count_word(uint32_t word, int64_t sign);
  static void rewrite(std::vector<int32_t>& tokens, Pair pair, int32_t id);
  void count_again(uint32_t word, int32_t id, std::vector<Pair>& risen);
  void propose(Pair pair);

  std::vector<Word> words_;
  std::unordered_map<Pair, Occurrences, Hash> pairs_;
  std::vector<Candidate> heap_;  ///< counts may be out of date; best() corrects them
};

}  // namespace trainyard::tokenizer
