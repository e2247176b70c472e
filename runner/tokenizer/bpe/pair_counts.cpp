#include "tokenizer/bpe/pair_counts.h"

#include <algorithm>

namespace trainyard::tokenizer {

size_t PairCounts::Hash::operator()(const Pair& pair) const {
  const uint64_t key =
      static_cast<uint64_t>(static_cast<uint32_t>(pair.first)) << 32U | static_cast<uint32_t>(pair.second);
  return (key ^ (key >> 29U)) * 0x9e3779b97f4a7c15U;
}

void PairCounts::add(std::string_view word, int64_t times) {
  Word& added = words_.emplace_back(Word{{}, times});
  for (const char byte : word) added.tokens.push_back(static_cast<unsigned char>(byte));
}

void PairCounts::start() {
  for (uint32_t word = 0; word < words_.size(); ++word) count_word(word, 1);
  for (const auto& [pair, occurrences] : pairs_) heap_.push_back({occurrences.count, pair});
  std::make_heap(heap_.begin(), heap_.end());
}

/// Adds (sign 1) or takes away (-1) what `word` contributes to the counts.
void PairCounts::count_word(uint32_t word, int64_t sign) {
  const Word& counted = words_[word];
  for (size_t i = 0; i + 1 < counted.tokens.size(); ++i) {
    const Pair pair{counted.tokens[i], counted.tokens[i + 1]};
    Occurrences& occurrences = pairs_[pair];
    occurrences.count += sign * counted.times;
    if (sign > 0) occurrences.remember(word);
  }
}

void PairCounts::propose(Pair pair) {
  heap_.push_back({pairs_.at(pair).count, pair});
  std::push_heap(heap_.begin(), heap_.end());
}

std::optional<Pair> PairCounts::best() {
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate top = heap_.back();
    heap_.pop_back();
    const auto found = pairs_.find(top.pair);
    if (found == pairs_.end()) continue;
    if (found->second.count == top.count) return top.count >= 2 ? std::optional(top.pair) : std::nullopt;
    if (found->second.count > 0 && found->second.count < top.count)
      propose(top.pair);  // a rise was proposed when it came
  }
  return std::nullopt;
}

void PairCounts::join(Pair pair, int32_t id) {
  const std::vector<uint32_t> where = std::move(pairs_.at(pair).words);
  std::vector<Pair> risen;
  for (const uint32_t word : where) {
    count_word(word, -1);
    rewrite(words_[word].tokens, pair, id);
    count_again(word, id, risen);
  }
  pairs_.erase(pair);
  std::ranges::sort(risen);
  const auto repeated = std::ranges::unique(risen);
  risen.erase(repeated.begin(), repeated.end());
  for (const Pair& changed : risen) propose(changed);
}

void PairCounts::rewrite(std::vector<int32_t>& tokens, Pair pair, int32_t id) {
  size_t out = 0;
  for (size_t in = 0; in < tokens.size(); ++out) {
    const bool is_pair = in + 1 < tokens.size() && tokens[in] == pair.first && tokens[in + 1] == pair.second;
    tokens[out] = is_pair ? id : tokens[in];
    in += is_pair ? 2 : 1;
  }
  tokens.resize(out);
}

/// Only pairs with the new token `id` can have become more frequent, and only those learn of a new place.
void PairCounts::count_again(uint32_t word, int32_t id, std::vector<Pair>& risen) {
  const auto& [tokens, times] = words_[word];
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const Pair pair{tokens[i], tokens[i + 1]};
    Occurrences& occurrences = pairs_[pair];
    occurrences.count += times;
    if (pair.first != id && pair.second != id) continue;
    occurrences.remember(word);
    risen.push_back(pair);
  }
}

}  // namespace trainyard::tokenizer
