#include "tokenizer/text/token_finder.h"

#include <algorithm>

#include "tokenizer/text/characters.h"

namespace trainyard::tokenizer {

void TokenFinder::add(const std::string& written, int32_t id, const AddedToken& token, Counts counts) {
  if (written.empty()) return;
  uint32_t at = 0;
  for (const char byte : written) {
    if (const Node* const known = child(nodes_[at], byte)) {
      at = static_cast<uint32_t>(known - nodes_.data());
      continue;
    }
    const auto made = static_cast<uint32_t>(nodes_.size());
    nodes_[at].next.emplace_back(static_cast<unsigned char>(byte), made);
    nodes_.emplace_back();
    at = made;
  }
  if (nodes_[at].sought >= 0) return;
  nodes_[at].sought = static_cast<int32_t>(sought_.size());
  sought_.push_back({written.size(), id, counts == Counts::Yes, token.single_word, token.lstrip, token.rstrip});
  bool& begins = begins_[static_cast<unsigned char>(written.front())];
  beginnings_ += begins ? 0 : 1;
  begins = true;
  only_beginning_ = written.front();
  longest_ = std::max(longest_, written.size());
  has_counting_ |= counts == Counts::Yes;
  has_strips_ |= token.lstrip || token.rstrip;
}

const TokenFinder::Node* TokenFinder::child(const Node& node, char byte) const {
  const auto found =
      std::ranges::find(node.next, static_cast<unsigned char>(byte), &std::pair<unsigned char, uint32_t>::first);
  return found == node.next.end() ? nullptr : &nodes_[found->second];
}

const TokenFinder::Sought* TokenFinder::longest_at_front(std::string_view text) const {
  const Sought* longest = nullptr;
  const Node* node = nodes_.data();
  for (size_t at = 0; at < text.size() && (node = child(*node, text[at])); ++at)
    if (node->sought >= 0) longest = &sought_[static_cast<size_t>(node->sought)];
  return longest;
}

size_t TokenFinder::next_beginning(std::string_view text, size_t from) const {
  if (beginnings_ == 1) return std::min(text.find(only_beginning_, from), text.size());
  while (from < text.size() && !begins_[static_cast<unsigned char>(text[from])]) ++from;
  return from;
}

std::optional<TokenFinder::Found> TokenFinder::next(std::string_view text, size_t from) const {
  for (size_t at = next_beginning(text, from); at < text.size(); at = next_beginning(text, at + 1))
    if (const Sought* const sought = longest_at_front(text.substr(at))) return Found{at, at + sought->length, sought};
  return std::nullopt;
}

void TokenFinder::split(std::string_view text, const Visit& visit) const {
  size_t done = 0;
  for (auto found = next(text, 0); found; found = next(text, found->end)) {
    const Sought& sought = *found->sought;
    size_t begin = found->begin, end = found->end;
    const bool is_in_word =
        sought.single_word && (ends_with_word(text.substr(0, begin)) || begins_with_word(text.substr(end)));
    if (!sought.counts || is_in_word) continue;
    if (sought.lstrip) begin = std::max(begin - white_space_at_back(text.substr(0, begin)), done);
    if (sought.rstrip) end += white_space_at_front(text.substr(end));
    if (done < begin) visit(text.substr(done, begin - done), std::nullopt);
    // A token of white space may lie in what the one before took in: `tokenizers` passes over it.
    if (begin < end) visit(text.substr(found->begin, sought.length), sought.id);
    done = end;
  }
  if (done < text.size()) visit(text.substr(done), std::nullopt);
}

bool TokenFinder::is_safe_cut(std::string_view text, size_t cut) const {
  if (is_idle() || cut == 0 || cut >= text.size()) return true;
  if (has_strips_ && white_space_at_back(text.substr(0, cut)) > 0 && white_space_at_front(text.substr(cut)) > 0)
    return false;
  for (size_t at = cut - std::min(cut, longest_); at <= cut; ++at) {
    const Sought* const sought = longest_at_front(text.substr(at));
    if (sought && at + sought->length >= cut) return false;
  }
  return true;
}

}  // namespace trainyard::tokenizer
