#include "web/answer.h"

#include <algorithm>

#include "base/text.h"

namespace trainyard::web {

std::string Answer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

bool is_worth_retry(const Answer& answer) {
  if (answer.failure == Failure::Distrusted || answer.failure == Failure::Stopped) return false;
  if (answer.failure != Failure::None) return true;
  return answer.status == 408 || answer.status == 429 || answer.status == 500 ||
         (answer.status >= 502 && answer.status <= 504);
}

std::chrono::milliseconds pause_before(int tries, const Answer& answer) {
  using std::chrono::milliseconds;
  constexpr milliseconds kFirst{250}, kLongest{8000}, kMostAsked{60000};
  if (const auto seconds = parse_int(answer.header("retry-after")); seconds && *seconds >= 0)
    return std::min<milliseconds>(std::chrono::seconds(std::min<int64_t>(*seconds, 3600)), kMostAsked);
  return std::min(kLongest, kFirst * (1 << std::min(tries - 1, 10)));
}

}  // namespace trainyard::web
