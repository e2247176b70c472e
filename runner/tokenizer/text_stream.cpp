#include "tokenizer/text_stream.h"

#include <algorithm>
#include <string_view>

#include "tokenizer/text/utf8.h"

namespace trainyard::tokenizer {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr int kMostOfOne = 3;  // bytes, or tokens of a byte each, that a character can be without its last

/// Bytes at the end that the next tokens may change. SentencePiece itself puts a U+FFFD for each byte of a character that
/// is not whole yet.
size_t open_bytes(std::string_view text) {
  if (const size_t unfinished = unfinished_bytes(text); unfinished > 0) return unfinished;
  size_t open = 0;
  for (int seen = 0; seen < kMostOfOne && text.substr(0, text.size() - open).ends_with(kReplacement); ++seen)
    open += kReplacement.size();
  return open;
}

}  // namespace

std::string TextStream::add(int32_t id) {
  ids_.push_back(id);
  text_ = tokenizer_.decode(ids_);
  return upto(text_.size() - open_bytes(text_));
}

std::string TextStream::finish() {
  return upto(text_.size());
}

std::string TextStream::upto(size_t end) {
  if (end <= given_) return "";
  const std::string more = printable(std::string_view(text_).substr(given_, end - given_));
  given_ = end;
  return more;
}

}  // namespace trainyard::tokenizer
