#pragma once

#include <functional>
#include <optional>
#include <string>

namespace trainyard::http {

struct Request {
  std::string method;  ///< "GET"; HEAD comes as GET, and its answer leaves without the body
  std::string path;    ///< without the query, percent-decoded
  std::string bearer;  ///< the token of "Authorization: Bearer …"; "" without one
  std::string body;
};

struct Response {
  int status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
  std::optional<int> retry_after_seconds{};
  bool close = false;  ///< the client's next request should find another replica
};

/// Called from a server's threads, several at once where it has several. What it throws is answered with 500 and
/// logged.
using Handler = std::function<Response(const Request&)>;

}  // namespace trainyard::http
