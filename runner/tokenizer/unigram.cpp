#include "tokenizer/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "tokenizer/text/utf8.h"

namespace trainyard::tokenizer {
namespace {

using PieceType = SentencePieceModel::PieceType;

constexpr float kUnknownPenalty = 10;   // unigram_model.cc: kUnkPenalty
constexpr size_t kKeptSteps = size_t{1} << 16;
constexpr float kLargestSum = 100'000;  // kScoreResetThreshold: above, a float has two decimal places left

/// How far the rounding of one sum below kLargestSum can be off: half of a float's last place there.
constexpr float kRounding = 1.0F / 256;

/// A path that ends with the piece `id` from `begin`; kept only where it is better than what is there.
void improve(auto& step, float score, size_t begin, int32_t id) {
  if (step.begin < 0) {
    step.score = score, step.begin = static_cast<int32_t>(begin), step.id = id;
  } else if (score > step.score) {
    step = {score, step.score, static_cast<int32_t>(begin), id};
  } else {
    step.runner_up = std::max(step.runner_up, score);
  }
}

/// A piece that may begin anywhere but in the midst of it has no beginning of a word.
bool stays_in_word(const SentencePieceModel::Piece& piece) {
  return piece.text.find(kPieceSpace, 1) == std::string_view::npos;
}

/// Makes the score at `begin` zero. Only differences count, so all that have been reached change by the same.
void take_off(auto& steps, size_t begin, size_t reached) {
  const float offset = steps[begin].score;
  for (size_t at = begin; at <= reached; ++at)
    if (at == begin || steps[at].begin >= 0) steps[at].score -= offset;
}

std::vector<int32_t> byte_ids_of(const SentencePieceModel& model) {
  if (!model.byte_fallback) return {};
  std::unordered_map<std::string_view, int32_t> ids;
  for (size_t id = 0; id < model.pieces.size(); ++id)
    if (model.pieces[id].type == PieceType::Byte) ids.emplace(model.pieces[id].text, static_cast<int32_t>(id));
  std::vector<int32_t> by_byte;
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(fmt::format("<0x{:02X}>", byte));
    by_byte.push_back(found == ids.end() ? model.unknown_id
                                         : found->second);  // the library has refused such a model before
  }
  return by_byte;
}

}  // namespace

Unigram::Unigram(const SentencePieceModel& model)
    : byte_ids_(byte_ids_of(model)),
      highest_(std::numeric_limits<float>::min()),
      unknown_score_(0),
      largest_(0),
      unknown_id_(model.unknown_id),
      by_words_(std::ranges::all_of(model.pieces, stays_in_word)),
      divides_words_(by_words_ && std::ranges::any_of(model.pieces, [](const auto& piece) {
                       return piece.text == kPieceSpace && piece.type == SentencePieceModel::PieceType::Normal;
                     })) {
  float lowest = std::numeric_limits<float>::max();
  for (const auto& piece : model.pieces) {
    scores_.push_back({piece.score, piece.type == PieceType::UserDefined, piece.type == PieceType::Unused});
    if (piece.type != PieceType::Normal) continue;
    lowest = std::min(lowest, piece.score);
    highest_ = std::max(highest_, piece.score);  // from the smallest positive number up, as the library has it
  }
  unknown_score_ = lowest - kUnknownPenalty;
  largest_ = std::abs(unknown_score_);
  for (size_t id = 0; id < model.pieces.size(); ++id)
    largest_ = std::max(largest_, std::abs(score_of(static_cast<int32_t>(id), model.pieces[id].text.size())));
  build_trie(model);
}

/// Level by level over the sorted pieces: a node stands for the range of pieces that begin with its bytes.
void Unigram::build_trie(const SentencePieceModel& model) {
  std::vector<std::pair<std::string_view, int32_t>> sorted;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const PieceType type = model.pieces[id].type;
    if (type == PieceType::Normal || type == PieceType::UserDefined || type == PieceType::Unused)
      sorted.emplace_back(model.pieces[id].text, static_cast<int32_t>(id));
  }
  std::ranges::sort(sorted);
  struct Range {
    size_t begin, end, depth;
  };
  std::vector<Range> ranges{{0, sorted.size(), 0}};  // by node
  nodes_.resize(1);
  for (size_t node = 0; node < nodes_.size(); ++node) {
    auto [begin, end, depth] = ranges[node];
    if (begin < end && sorted[begin].first.size() == depth) nodes_[node].piece = sorted[begin++].second;
    nodes_[node].first_edge = static_cast<uint32_t>(edges_.size());
    while (begin < end) {
      const char byte = sorted[begin].first[depth];
      const size_t first = begin;
      while (begin < end && sorted[begin].first[depth] == byte) ++begin;
      edges_.push_back({static_cast<unsigned char>(byte), static_cast<uint32_t>(nodes_.size())});
      nodes_.emplace_back();
      ranges.push_back({first, begin, depth + 1});
    }
    nodes_[node].edges = static_cast<uint32_t>(edges_.size()) - nodes_[node].first_edge;
  }
}

const Unigram::Node* Unigram::child(const Node& node, char byte) const {
  const Edge* const begin = edges_.data() + node.first_edge;
  const Edge* const end = begin + node.edges;
  const Edge* const found = std::lower_bound(begin, end, static_cast<unsigned char>(byte),
                                             [](const Edge& edge, unsigned char wanted) { return edge.byte < wanted; });
  return found != end && found->byte == static_cast<unsigned char>(byte) ? &nodes_[found->node] : nullptr;
}

/// A piece that the user defined is always taken: it gets the best score for each of its bytes.
float Unigram::score_of(int32_t id, size_t bytes) const {
  const Score& score = scores_[static_cast<size_t>(id)];
  return score.is_user_defined ? static_cast<float>(static_cast<float>(bytes) * highest_ - 0.1) : score.value;
}

void Unigram::extend_from(std::string_view text, size_t begin, std::vector<Step>& steps, size_t& reached) const {
  if (std::abs(steps[begin].score) > kLargestSum) take_off(steps, begin, reached);
  const float so_far = steps[begin].score;
  const size_t one_character = std::min(utf8_length(static_cast<unsigned char>(text[begin])), text.size() - begin);
  bool has_one_character = false;
  const Node* node = nodes_.data();
  for (size_t end = begin; end < text.size();) {
    node = child(*node, text[end++]);
    if (!node) break;
    if (node->piece < 0 || scores_[static_cast<size_t>(node->piece)].is_unused) continue;
    reached = std::max(reached, end);
    improve(steps[end], score_of(node->piece, end - begin) + so_far, begin, node->piece);
    has_one_character |= end - begin == one_character;
  }
  if (has_one_character) return;
  reached = std::max(reached, begin + one_character);
  improve(steps[begin + one_character], unknown_score_ + so_far, begin, unknown_id_);
}

/// The first place behind the first character where a word begins.
size_t Unigram::end_of_word(std::string_view text, size_t begin) const {
  return by_words_ ? std::min(text.find(kPieceSpace, begin + 1), text.size()) : text.size();
}

bool Unigram::stays_small(float score, std::string_view word) const {
  return std::abs(score) + static_cast<float>(word.size()) * largest_ < kLargestSum;
}

std::vector<int32_t> Unigram::encode(std::string_view normalized, Scratch& scratch) const {
  if (normalized.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    throw std::length_error("Unigram: text of 2 GiB and more");
  Path path;
  path.ids.reserve(normalized.size() / 3);
  for (size_t begin = 0, end = 0; begin < normalized.size(); begin = end) {
    end = end_of_word(normalized, begin);
    const std::string_view word = normalized.substr(begin, end - begin);
    if (!find_known(word, scratch, path)) divide(word, scratch, path);
  }
  return std::move(path.ids);
}

/// The pieces of a known word, and the sum as it would have come about.
bool Unigram::find_known(std::string_view word, const Scratch& scratch, Path& path) const {
  if (!stays_small(path.score, word)) return false;
  const size_t before = path.ids.size();
  if (!scratch.cache.find(word, path.ids)) return false;
  for (size_t at = before; at < path.ids.size(); ++at)
    path.score = scores_[static_cast<size_t>(path.ids[at])].value + path.score;
  path.after_unknown = false;
  return true;
}

void Unigram::divide(std::string_view word, Scratch& scratch, Path& path) const {
  const bool is_small = stays_small(path.score, word);
  std::vector<Step>& steps = scratch.steps;
  steps.assign(word.size() + 1, Step());
  steps[0].score = path.score;
  size_t reached = 0;
  for (size_t begin = 0; begin < word.size(); begin += utf8_length(static_cast<unsigned char>(word[begin])))
    extend_from(word, begin, steps, reached);
  scratch.ends.clear();
  for (auto end = static_cast<int32_t>(word.size()); end > 0; end = steps[static_cast<size_t>(end)].begin)
    scratch.ends.push_back(end);
  path.score = steps[word.size()].score;
  const size_t before = path.ids.size();
  append_best(word, scratch, path);
  if (is_small && by_words_ && is_decided(word, scratch))
    scratch.cache.keep(word, std::span(path.ids).subspan(before));
  // A text without a space is a word of its own: its steps are not kept for the next.
  if (steps.capacity() > kKeptSteps) std::vector<Step>().swap(steps);
}

void Unigram::append_best(std::string_view word, const Scratch& scratch, Path& path) const {
  for (auto end = scratch.ends.rbegin(); end != scratch.ends.rend(); ++end) {
    const Step& step = scratch.steps[static_cast<size_t>(*end)];
    const bool is_unknown = step.id == unknown_id_;
    if (!is_unknown)
      path.ids.push_back(step.id);
    else if (!byte_ids_.empty() || !path.after_unknown)
      append_unknown(word.substr(static_cast<size_t>(step.begin), static_cast<size_t>(*end - step.begin)), path.ids);
    path.after_unknown = is_unknown;
  }
}

/// Whether the word has these pieces whatever the sum before it: at each of their ends the second best is behind by
/// more than two paths can be off by their roundings, here and there. What is not a plain piece is not kept.
bool Unigram::is_decided(std::string_view word, const Scratch& scratch) const {
  const float margin = 4 * kRounding * static_cast<float>(word.size());
  return std::ranges::all_of(scratch.ends, [&](int32_t end) {
    const Step& step = scratch.steps[static_cast<size_t>(end)];
    return step.id != unknown_id_ && !scores_[static_cast<size_t>(step.id)].is_user_defined &&
           step.score - step.runner_up > margin;
  });
}

void Unigram::append_unknown(std::string_view text, std::vector<int32_t>& ids) const {
  if (byte_ids_.empty()) return ids.push_back(unknown_id_);
  for (const char byte : text) ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
}

}  // namespace trainyard::tokenizer
