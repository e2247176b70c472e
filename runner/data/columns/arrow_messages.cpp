#include "data/columns/arrow_messages.h"

#include <fmt/format.h>

#include <cstring>

#include "data/columns/damage.h"

namespace trainyard::data {
namespace {

constexpr std::string_view kFileMark("ARROW1\0\0", 8);
constexpr int32_t kContinuation = -1;
constexpr int32_t kLargestMetadata = 1 << 28;

}  // namespace

ArrowMessages::ArrowMessages(std::string_view bytes) : rest_(bytes) {
  if (rest_.empty()) throw NotOffered("is empty, and no Arrow file");
  has_footer_ = rest_.starts_with(kFileMark);
  if (has_footer_) rest_.remove_prefix(kFileMark.size());
}

std::string_view ArrowMessages::take(size_t length) {
  if (length > rest_.size())
    throw NotOffered(
        fmt::format("is cut off: {} bytes are to follow {} bytes before its end; get it again", length, rest_.size()));
  const std::string_view taken = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return taken;
}

int32_t ArrowMessages::take_length() {
  int32_t length = 0;
  std::memcpy(&length, take(sizeof length).data(), sizeof length);
  return length;
}

std::optional<ArrowMessage> ArrowMessages::next() {
  if (rest_.empty() && !has_footer_) return std::nullopt;  // a stream may end without its mark
  int32_t length = take_length();
  if (length == kContinuation) length = take_length();  // versions before 0.15 wrote the length alone
  if (length == 0) return std::nullopt;
  if (length < 0 || length > kLargestMetadata)
    throw NotOffered(fmt::format("is no Arrow file, or is damaged: where a message begins, its length is {}", length));
  const std::string_view metadata = take(static_cast<size_t>(length));
  ArrowMessage message{{metadata.begin(), metadata.end()}, {}};
  constexpr flatbuffers::uoffset_t kDepth = 64, kTables = 1'000'000;
  flatbuffers::Verifier verifier(message.metadata.data(), message.metadata.size(), kDepth, kTables);
  if (!fbs::VerifyMessageBuffer(verifier))
    throw NotOffered(fmt::format("is no Arrow file, or is damaged: {} bytes before its end there is no message",
                                 rest_.size() + metadata.size()));
  const int64_t body = message.message().body_length();
  if (body < 0) throw Damage(fmt::format("the body of a message has {} bytes", body));
  message.body = take(static_cast<size_t>(body));
  return message;
}

}  // namespace trainyard::data
