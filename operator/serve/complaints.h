#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "kube/result.h"

namespace trainyard::serve {

/// What goes wrong with the API server is tried again for ever, and its log says it once: again only where it lasts
/// long, and when it is over. What is wrong with the server as a whole (it is away, not trusted, refuses who we are) is
/// one thing, however many requests fail by it. Without a clock: `now` comes in. One thread.
class Complaints {
 public:
  using Now = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::minutes kReminder{10};

  /// `server`: its address; `origin`: where that and the identity are from, for messages. `role`: the manifest that
  /// grants what is needed.
  Complaints(std::string server, std::string origin, std::string role);

  /// A request failed; `what` it was about ("pods", "the leader's lease"). The line to log; none where it was said
  /// lately.
  [[nodiscard]] std::optional<std::string> failed(const std::string& what, const kube::ApiError& error, Now now);
  /// An answer came with this status (0: none). The line to log; none where the server was not complained of.
  [[nodiscard]] std::optional<std::string> answered(int status);
  /// What `what` is about works. The same.
  [[nodiscard]] std::optional<std::string> works(const std::string& what);

 private:
  struct Said {
    std::string cause;
    Now at;
  };
  [[nodiscard]] std::string line_of(const std::string& what, const kube::ApiError& error) const;

  std::string server_, origin_, role_;
  std::map<std::string, Said> said_;  ///< by what it is about; "": the server
};

}  // namespace trainyard::serve
