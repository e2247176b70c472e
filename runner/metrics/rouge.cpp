#include "metrics/rouge.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "metrics/porter_stemmer.h"

namespace trainyard::metrics {
namespace {

using Text = std::vector<std::string>;  // word by word

Text words_of(std::string_view text, Words kind) {
  Text words;
  bool inside = false;
  for (const char c : text) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    const bool is_word = is_upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (is_word && !inside) words.emplace_back();
    if (is_word) words.back() += static_cast<char>(is_upper ? c - 'A' + 'a' : c);
    inside = is_word;
  }
  if (kind == Words::Stems)
    for (std::string& word : words)
      if (word.size() > 3) word = porter_stem(std::move(word));
  return words;
}

std::vector<Text> lines_of(std::string_view text, Words kind) {
  std::vector<Text> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) lines.push_back(words_of(text.substr(begin, end - begin), kind));
    begin = end + 1;
  }
  return lines;
}

double f1(size_t common, size_t made, size_t reference) {
  if (common == 0) return 0;
  const double precision = static_cast<double>(common) / static_cast<double>(made);
  const double recall = static_cast<double>(common) / static_cast<double>(reference);
  return 2 * precision * recall / (precision + recall);
}

double of_runs(const Text& made, const Text& reference, size_t length) {
  const auto count = [length](const Text& words) {
    std::map<Text, size_t> counts;
    for (size_t i = 0; i + length <= words.size(); ++i)
      ++counts[Text(words.begin() + static_cast<ptrdiff_t>(i), words.begin() + static_cast<ptrdiff_t>(i + length))];
    return counts;
  };
  const auto runs = [length](const Text& words) { return words.size() < length ? 0 : words.size() - length + 1; };
  const auto ours = count(made), theirs = count(reference);
  size_t common = 0;
  for (const auto& [run, times] : ours)
    if (const auto found = theirs.find(run); found != theirs.end()) common += std::min(times, found->second);
  return f1(common, runs(made), runs(reference));
}

/// Row i, column j: the longest common subsequence of the first i words of `a` and the first j of `b`.
std::vector<std::vector<size_t>> common_subsequences(const Text& a, const Text& b) {
  std::vector<std::vector<size_t>> lengths(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j)
      lengths[i][j] = a[i - 1] == b[j - 1] ? lengths[i - 1][j - 1] + 1 : std::max(lengths[i - 1][j], lengths[i][j - 1]);
  return lengths;
}

/// Marks the words of `reference` in one longest common subsequence with `line`: of several, rouge_score's.
void mark_common(const Text& reference, const Text& line, std::vector<bool>& marked) {
  const auto lengths = common_subsequences(reference, line);
  for (size_t i = reference.size(), j = line.size(); i > 0 && j > 0;) {
    if (reference[i - 1] == line[j - 1]) {
      marked[--i] = true, --j;
    } else if (lengths[i][j - 1] > lengths[i - 1][j]) {
      --j;
    } else {
      --i;
    }
  }
}

using Counts = std::map<std::string, size_t>;

Counts counts_of(const std::vector<Text>& lines, size_t& total) {
  Counts counts;
  for (const Text& line : lines)
    for (const std::string& word : line) ++counts[word], ++total;
  return counts;
}

/// Each word counts as often as both texts have it, however many lines share it.
double of_lines(const std::vector<Text>& made, const std::vector<Text>& reference) {
  size_t made_words = 0, reference_words = 0, common = 0;
  Counts ours = counts_of(made, made_words), theirs = counts_of(reference, reference_words);
  for (const Text& line : reference) {
    std::vector<bool> marked(line.size());
    for (const Text& other : made) mark_common(line, other, marked);
    for (size_t i = 0; i < line.size(); ++i) {
      size_t &our_count = ours[line[i]], &their_count = theirs[line[i]];
      if (marked[i] && our_count > 0 && their_count > 0) --our_count, --their_count, ++common;
    }
  }
  return f1(common, made_words, reference_words);
}

}  // namespace

Rouge rouge(std::string_view made, std::string_view reference, Words words) {
  const Text ours = words_of(made, words), theirs = words_of(reference, words);
  const size_t longest = common_subsequences(ours, theirs).back().back();
  return {of_runs(ours, theirs, 1), of_runs(ours, theirs, 2), f1(longest, ours.size(), theirs.size()),
          of_lines(lines_of(made, words), lines_of(reference, words))};
}

}  // namespace trainyard::metrics
