#include "tokenizer/bpe/bpe_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tokenizer/bpe/word_cache.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::tokenizer {
namespace {

bool is_by_compatibility(Normalization form) {
  return form == Normalization::Nfkc || form == Normalization::Nfkd;
}

}  // namespace

struct BpeTokenizer::Workspace {
  Splitter::Scratch splitter;
  BpeModel::Scratch model;
  WordCache cache;
};

BpeTokenizer::BpeTokenizer(BpeParts parts)
    : parts_(std::move(parts)),
      vocab_size_(parts_.model.size()),
      workspaces_(std::make_unique<Workspaces<Workspace>>()) {
  const auto find = [this](const std::string& written) { return find_token(written); };
  added_ = AddedTokens(tokens_in_text(parts_.special, find), parts_.normalization, parts_.special.in_text);
  if (!parts_.special.added.empty())
    vocab_size_ = std::max<int64_t>(vocab_size_, parts_.special.added.rbegin()->first + 1);
  eos_ = document_end(parts_.special, find);
  bos_ = document_begin(parts_.special, find);
}

BpeTokenizer::~BpeTokenizer() = default;

std::optional<int32_t> BpeTokenizer::find_token(const std::string& written) const {
  for (const auto& [id, token] : parts_.special.added)
    if (token.content == written) return id;
  for (const auto& [id, text] : parts_.unspelled)
    if (text == written) return id;
  return parts_.model.find(written);
}

std::vector<int32_t> BpeTokenizer::encode_after(std::string_view before, std::string_view text) const {
  require_utf8(text, "text");
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3);
  const Workspaces<Workspace>::Loan loan(*workspaces_);
  Place place = before.empty() ? Place::Begins : Place::GoesOn;
  if (added_.is_idle()) {
    std::string changed;  // holds the text where it is not taken as it comes
    if (!parts_.normalization.empty()) text = changed = normalize(text, parts_.normalization);
    encode_stretch(text, place, *loan, ids);
    return ids;
  }
  added_.split(text, [&](std::string_view part, std::optional<int32_t> token) {
    if (token)
      ids.push_back(*token);
    else
      encode_stretch(part, place, *loan, ids);
    place = Place::Begins;
  });
  return ids;
}

void BpeTokenizer::encode_stretch(std::string_view text, Place place, Workspace& workspace,
                                  std::vector<int32_t>& ids) const {
  parts_.splitter.split(text, place, workspace.splitter,
                        [&](std::string_view piece) { encode_piece(piece, workspace, ids); });
}

/// No normal form puts what is behind a space or a line feed together with that, nor a space with what is before it. One
/// by compatibility may make a character begin with a space.
bool BpeTokenizer::is_border(std::string_view document, size_t at) const {
  const bool stays_word = is_ascii(document[at]) || std::ranges::none_of(parts_.normalization, is_by_compatibility);
  return stays_word && parts_.splitter.is_border(document, at) && added_.are_clear_of_border(document, at);
}

void BpeTokenizer::encode_piece(std::string_view piece, Workspace& workspace, std::vector<int32_t>& ids) const {
  if (workspace.cache.find(piece, ids)) return;
  const size_t before = ids.size();
  parts_.model.encode(piece, workspace.model, ids);
  workspace.cache.keep(piece, std::span(ids).subspan(before));
}

std::string BpeTokenizer::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (size_t at = 0; at < ids.size(); ++at) {
    const auto added = parts_.special.added.find(ids[at]);
    const auto unspelled = parts_.unspelled.find(ids[at]);
    if (added != parts_.special.added.end()) {
      text += added->second.content;
    } else if (unspelled != parts_.unspelled.end()) {
      text += unspelled->second;
    } else if (const auto& piece = parts_.model.piece(ids[at])) {
      text += *piece;
    } else {
      throw InputError(fmt::format("decode: id {} at position {} stands for nothing; ids run from 0 to {}", ids[at], at,
                                   vocab_size_ - 1));
    }
  }
  return text;
}

}  // namespace trainyard::tokenizer
