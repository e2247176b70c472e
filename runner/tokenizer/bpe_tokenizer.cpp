#include "tokenizer/bpe_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tokenizer/utf8.h"
#include "tokenizer/word_cache.h"

namespace trainyard::tokenizer {

struct BpeTokenizer::Workspace {
  Splitter::Scratch splitter;
  BpeModel::Scratch model;
  WordCache cache;
};

BpeTokenizer::BpeTokenizer(BpeParts parts)
    : parts_(std::move(parts)),
      vocab_size_(parts_.model.size()),
      workspaces_(std::make_unique<Workspaces<Workspace>>()) {
  if (!parts_.special.texts.empty())
    vocab_size_ = std::max<int64_t>(vocab_size_, parts_.special.texts.rbegin()->first + 1);
  const auto find = [this](const std::string& written) { return find_token(written); };
  eos_ = document_end(parts_.special, find);
  bos_ = document_begin(parts_.special, find);
}

BpeTokenizer::~BpeTokenizer() = default;

std::optional<int32_t> BpeTokenizer::find_token(const std::string& written) const {
  for (const auto& [id, text] : parts_.special.texts)
    if (text == written) return id;
  return parts_.model.find(written);
}

std::vector<int32_t> BpeTokenizer::encode_after(std::string_view before, std::string_view text) const {
  require_utf8(text, "text");
  std::string changed;  // holds the text where it is not taken as it comes
  if (!parts_.normalization.empty()) text = changed = normalize(text, parts_.normalization);
  if (parts_.add_prefix_space && before.empty() && !text.empty() && text.front() != ' ') text = changed = fmt::format(" {}", text);
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3);
  const Workspaces<Workspace>::Loan loan(*workspaces_);
  Workspace& workspace = *loan;
  parts_.splitter.split(text, workspace.splitter,
                        [&](std::string_view piece) { encode_piece(piece, workspace, ids); });
  return ids;
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
    const auto special = parts_.special.texts.find(ids[at]);
    if (special != parts_.special.texts.end()) {
      text += special->second;
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
