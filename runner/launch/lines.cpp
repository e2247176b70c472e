#include "launch/lines.h"

#include "base/text.h"

namespace trainyard::launch {
namespace {

constexpr size_t kMaxLine = size_t{64} << 10;
constexpr size_t kMaxKept = size_t{2} << 10;

}  // namespace

std::string LinePrefixer::feed(std::string_view bytes) {
  std::string output;
  partial_ += bytes;
  std::string_view rest = partial_;
  for (;;) {
    const size_t end = rest.find_first_of("\r\n");
    // "\r\n" is one end, and its second half may not have come yet.
    if (end == std::string_view::npos || (rest[end] == '\r' && end + 1 == rest.size())) break;
    const size_t length = rest.substr(end, 2) == "\r\n" ? 2 : 1;
    take(rest.substr(0, end), rest.substr(end, length), output);
    rest.remove_prefix(end + length);
  }
  if (rest.size() > kMaxLine) {
    take(rest, "\n", output);
    rest = {};
  }
  partial_ = std::string(rest);
  return output;
}

std::string LinePrefixer::finish() {
  std::string output;
  std::string_view rest = partial_;
  if (rest.ends_with('\r')) rest.remove_suffix(1);
  if (!partial_.empty()) take(rest, "\n", output);
  partial_.clear();
  return output;
}

void LinePrefixer::take(std::string_view line, std::string_view end, std::string& output) {
  if (!trim(line).empty()) last_line_ = trim(line).substr(0, kMaxKept);
  output.append(prefix_).append(line).append(end);
}

}  // namespace trainyard::launch
