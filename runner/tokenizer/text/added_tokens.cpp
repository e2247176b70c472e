#include "tokenizer/text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "tokenizer/text/utf8.h"

namespace trainyard::tokenizer {
namespace {

/// How much of the text on one side of a cut may be a token with what a normal form does to its neighbours.
constexpr size_t kRoomForForms = 64;

size_t character_border(std::string_view text, size_t at) {
  while (at > 0 && at < text.size() && is_inside_character(text, at)) --at;
  return at;
}

}  // namespace

AddedTokens::AddedTokens(const std::map<int32_t, AddedToken>& tokens, std::vector<Normalization> forms,
                         SpecialTokensAre special)
    : forms_(std::move(forms)) {
  for (const auto& [id, token] : tokens) {
    const bool counts = !token.special || special == SpecialTokensAre::Parsed;
    const std::string written = token.normalized ? normalize(token.content, forms_) : token.content;
    (token.normalized ? normalized_ : raw_)
        .add(written, id, token, counts ? TokenFinder::Counts::Yes : TokenFinder::Counts::No);
    if (!counts || written.empty()) continue;
    is_special_.emplace(id, token.special);
    sought_ = std::max(sought_, token.special ? Added::Special : Added::Words);
  }
}

void AddedTokens::split(std::string_view text, const TokenFinder::Visit& visit) const {
  raw_.split(text, [&](std::string_view part, std::optional<int32_t> token) {
    if (token) return visit(part, token);
    normalized_.split(forms_.empty() ? part : std::string_view(normalize(part, forms_)), visit);
  });
}

Added AddedTokens::found_in(std::string_view text) const {
  Added found = Added::None;
  if (is_idle()) return found;
  split(text, [&](std::string_view, std::optional<int32_t> token) {
    if (token) found = std::max(found, is_special_.at(*token) ? Added::Special : Added::Words);
  });
  return found;
}

bool AddedTokens::is_safe_cut(std::string_view text, size_t cut) const {
  if (is_idle()) return true;
  if (!raw_.is_safe_cut(text, cut)) return false;
  if (normalized_.is_idle()) return true;
  if (forms_.empty()) return normalized_.is_safe_cut(text, cut);
  const size_t room = normalized_.longest() * 4 + kRoomForForms;
  const size_t begin = character_border(text, cut - std::min(cut, room)),
               end = character_border(text, std::min(text.size(), cut + room));
  const std::string_view near = text.substr(begin, end - begin);
  // What stands between tokens of the text as it is has a normal form of its own.
  if (find_invalid_utf8(near) || raw_.is_in(near)) return false;
  const std::string before = normalize(text.substr(begin, cut - begin), forms_),
                    behind = normalize(text.substr(cut, end - cut), forms_);
  return normalized_.is_safe_cut(before + behind, before.size());
}

bool AddedTokens::are_clear_of_border(std::string_view text, size_t at) const {
  const size_t other_side = text[at] == ' ' ? at + 1 : at - 1;  // of the one character of white space
  return is_safe_cut(text, at) && is_safe_cut(text, other_side);
}

}  // namespace trainyard::tokenizer
