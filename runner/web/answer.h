#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

// What a server answers over HTTP, and whether to ask again. Pure.
namespace trainyard::web {

/// Why no whole answer came.
enum class Failure {
  None,
  Unreachable,  ///< no connection was made
  Distrusted,   ///< the server's certificate is not trusted
  Cut,          ///< the connection ended or went silent before the end
  TimedOut,     ///< no answer in time
  Stopped,      ///< whoever takes the bytes wanted no more
};

struct Answer {
  long status = 0;                             ///< 0: none came
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string text;                            ///< the body; of one that went to a sink, nothing
  Failure failure = Failure::None;             ///< also where a status came, but not the whole body
  std::string reason;                          ///< of the failure

  /// "" where there is no such header. `name` in lower case.
  [[nodiscard]] std::string header(const std::string& name) const;
  [[nodiscard]] bool is_good() const { return failure == Failure::None && status >= 200 && status < 300; }
  [[nodiscard]] bool is_redirect() const { return status >= 300 && status < 400 && !header("location").empty(); }
};

/// Whether the same question may have another answer a moment later.
bool is_worth_retry(const Answer& answer);

/// How long to wait before try number `tries` (from 1) after `answer`: longer each time, or as the server says.
std::chrono::milliseconds pause_before(int tries, const Answer& answer);

/// So many tries in a row may bring nothing.
inline constexpr int kMostTries = 5;

}  // namespace trainyard::web
