#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"
#include "http/server.h"
#include "kube/event_loop.h"

namespace trainyard::controller::test {

/// An API server on the loopback that gives the answers that a test has prepared. What is not prepared is not there:
/// 404. Events are taken and not kept.
class ApiServer {
 public:
  ApiServer();

  /// The answer to "POST /api/v1/…", without the query. Several answers to one request are given in their order.
  void prepare(const std::string& request, int status, const std::string& body);
  void prepare(const std::string& request, int status, const Json& body) { prepare(request, status, dump(body)); }

  /// What a list of this path has from now on. A watch of it for which no answer is prepared ends at once.
  void set_list(const std::string& path, const Json& items);

  [[nodiscard]] std::string url() const;
  /// "POST /api/v1/…" of those that came so far, in their order.
  [[nodiscard]] std::vector<std::string> requests() const;
  /// What was sent with the last of these requests; null without any.
  [[nodiscard]] Json body_of(const std::string& request) const;

 private:
  http::Response answer(const http::Request& request);

  mutable std::mutex mutex_;
  std::map<std::string, std::deque<http::Response>> answers_;  ///< under mutex_, as the next three
  std::map<std::string, Json> lists_;
  std::vector<std::string> requests_;
  std::map<std::string, std::string> bodies_;
  http::Server server_;  ///< last: its threads use all above
};

/// A Status of kind "Failure", as the API server refuses with.
[[nodiscard]] Json refusal(const std::string& reason, const std::string& message);

/// Runs the loop until `holds`, which it looks at again and again. Throws where that takes half a minute.
void run_until(kube::EventLoop& loop, const std::function<bool()>& holds);

}  // namespace trainyard::controller::test
