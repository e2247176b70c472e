#include "tokenizer/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <unordered_map>

#include "tokenizer/utf8.h"

namespace trainyard::tokenizer {
namespace {

using PieceType = SentencePieceModel::PieceType;

constexpr float kUnknownPenalty = 10;   // unigram_model.cc: kUnkPenalty
constexpr float kLargestSum = 100'000;  // kScoreResetThreshold: above, a float has two decimal places left

/// A path that ends with the piece `id` from `begin`; kept only where it is better than what is there.
void improve(auto& step, float score, size_t begin, int32_t id) {
  if (step.begin >= 0 && !(score > step.score)) return;
  step = {score, static_cast<int32_t>(begin), id};
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
      unknown_id_(model.unknown_id) {
  float lowest = std::numeric_limits<float>::max();
  for (const auto& piece : model.pieces) {
    scores_.push_back({piece.score, piece.type == PieceType::UserDefined, piece.type == PieceType::Unused});
    if (piece.type != PieceType::Normal) continue;
    lowest = std::min(lowest, piece.score);
    highest_ = std::max(highest_, piece.score);  // from the smallest positive number up, as the library has it
  }
  unknown_score_ = lowest - kUnknownPenalty;
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

std::vector<int32_t> Unigram::encode(std::string_view normalized) const {
  if (normalized.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    throw std::length_error("Unigram: text of 2 GiB and more");
  std::vector<Step> steps(normalized.size() + 1);
  size_t reached = 0;
  for (size_t begin = 0; begin < normalized.size(); begin += utf8_length(static_cast<unsigned char>(normalized[begin])))
    extend_from(normalized, begin, steps, reached);
  std::vector<size_t> ends;
  for (size_t end = normalized.size(); end > 0; end = static_cast<size_t>(steps[end].begin)) ends.push_back(end);
  std::vector<int32_t> ids;
  bool after_unknown = false;
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const Step& step = steps[*end];
    const bool is_unknown = step.id == unknown_id_;
    if (!is_unknown)
      ids.push_back(step.id);
    else if (!byte_ids_.empty() || !after_unknown)
      append_unknown(normalized.substr(static_cast<size_t>(step.begin), *end - static_cast<size_t>(step.begin)), ids);
    after_unknown = is_unknown;
  }
  return ids;
}

void Unigram::append_unknown(std::string_view text, std::vector<int32_t>& ids) const {
  if (byte_ids_.empty()) return ids.push_back(unknown_id_);
  for (const char byte : text) ids.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
}

}  // namespace trainyard::tokenizer
