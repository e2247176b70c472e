#include "tokenizer/text/sentencepiece_normalizer.h"

#include <algorithm>

#include "tokenizer/text/borders.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::tokenizer {
namespace {

constexpr int kAscii = 128;
constexpr size_t kLongestKey = 256;  ///< of a map that parse_sentencepiece() has looked through

}  // namespace

SentencePieceNormalizer::SentencePieceNormalizer(const SentencePieceModel& model)
    : map_(model.normalizer_charsmap),
      charsmap_(map_),
      adds_prefix_(model.add_dummy_prefix && !model.treat_whitespace_as_suffix),
      adds_suffix_(model.add_dummy_prefix && model.treat_whitespace_as_suffix),
      removes_spaces_(model.remove_extra_whitespaces),
      escapes_(model.escape_whitespaces) {
  for (const auto& piece : model.pieces)
    if (piece.type == SentencePieceModel::PieceType::UserDefined && !piece.text.empty())
      user_defined_.emplace_back(piece.text);
  std::ranges::sort(user_defined_, std::ranges::greater(), &std::string::size);
  longest_step_ = std::max(kLongestKey, user_defined_.empty() ? 0 : user_defined_[0].size());
  for (const std::string& each : user_defined_) begins_user_defined_[static_cast<unsigned char>(each[0])] = true;
  for (int byte = 1; byte < kAscii; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    bool stays = byte != ' ' && !begins_user_defined_[static_cast<size_t>(byte)] && step_at_front(one).text == one;
    for (int next = 1; next < kAscii; ++next)
      stays &= !charsmap_.has_keys_with(static_cast<unsigned char>(byte), static_cast<unsigned char>(next));
    stays_[static_cast<size_t>(byte)] = stays;
  }
}

size_t SentencePieceNormalizer::user_defined_at_front(std::string_view text) const {
  if (!begins_user_defined_[static_cast<unsigned char>(text[0])]) return 0;
  const auto found =
      std::ranges::find_if(user_defined_, [&](const std::string& each) { return text.starts_with(each); });
  return found == user_defined_.end() ? 0 : found->size();
}

SentencePieceNormalizer::Step SentencePieceNormalizer::step_at_front(std::string_view text) const {
  if (const size_t length = user_defined_at_front(text)) return {text.substr(0, length), length};
  if (const auto found = charsmap_.longest_at_front(text); found.length > 0) return {found.replacement, found.length};
  const size_t length = std::min(utf8_length(static_cast<unsigned char>(text[0])), text.size());
  return {text.substr(0, length), length};
}

void SentencePieceNormalizer::append(std::string_view text, std::string& out) const {
  if (!escapes_ || text.find(' ') == std::string_view::npos) {
    out += text;
    return;
  }
  for (const char byte : text) {
    if (byte == ' ')
      out += kPieceSpace;
    else
      out += byte;
  }
}

/// Only the last character of `before` counts.
bool SentencePieceNormalizer::ends_with_space(std::string_view before) const {
  size_t begin = before.size() - 1;
  while (begin > 0 && is_inside_character(before, begin)) --begin;
  return step_at_front(before.substr(begin)).text.ends_with(' ');
}

/// Whether no step goes on over `at`, and those that end there leave something that ends with no space.
bool SentencePieceNormalizer::ends_with_word(std::string_view text, size_t at) const {
  for (size_t begin = at; begin > 0 && at - begin < longest_step_;) {
    --begin;
    if ((static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) continue;
    const Step step = step_at_front(text.substr(begin, 2 * longest_step_));
    if (step.length > at - begin) return false;
    if (step.length == at - begin && (step.text.empty() || step.text.ends_with(' '))) return false;
  }
  return true;
}

bool SentencePieceNormalizer::is_border(std::string_view text, size_t at) const {
  if (!escapes_ || adds_suffix_) return false;
  if (is_between_words(text, at)) return ends_with_word(text, at);
  return removes_spaces_ && begins_line(text, at) && ends_with_word(text, at - 1) &&
         step_at_front(text.substr(at - 1, longest_step_)).length == 1 && ends_with_space(text.substr(0, at));
}

std::string SentencePieceNormalizer::normalize(std::string_view text, std::string_view before) const {
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  bool after_space = removes_spaces_;  // and what follows of them goes
  if (before.empty()) {
    while (removes_spaces_ && !text.empty()) {
      const Step step = step_at_front(text);
      if (step.text != " ") break;
      text.remove_prefix(step.length);
    }
    if (text.empty()) return out;
    if (adds_prefix_) out += space();
  } else if (removes_spaces_) {
    after_space = ends_with_space(before);
    if (after_space) out += space();  // the part before this one has lost it as its last
  }
  while (!text.empty()) {
    size_t plain = 0;
    while (plain + 1 < text.size() && stays_[static_cast<unsigned char>(text[plain])] && is_ascii(text[plain + 1]))
      ++plain;
    if (plain > 0) {
      out += text.substr(0, plain);
      text.remove_prefix(plain);
      after_space = false;
    }
    Step step = step_at_front(text);
    text.remove_prefix(step.length);
    while (after_space && step.text.starts_with(' ')) step.text.remove_prefix(1);
    if (step.text.empty()) continue;
    append(step.text, out);
    after_space = removes_spaces_ && step.text.ends_with(' ');
  }
  while (removes_spaces_ && out.ends_with(space())) out.resize(out.size() - space().size());
  if (adds_suffix_) out += space();
  return out;
}

}  // namespace trainyard::tokenizer
