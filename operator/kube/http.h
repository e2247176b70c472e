#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What goes over a connection and what comes of it, without one: tested as strings.
namespace trainyard::kube {

enum class Method { Get, Post, Put, Patch, Delete };
[[nodiscard]] const char* name_of(Method method);  ///< "GET"
[[nodiscard]] inline bool is_write(Method method) {
  return method != Method::Get;
}

/// The host of "https://HOST:PORT/…"; an IPv6 address keeps its brackets.
[[nodiscard]] std::string_view host_of(std::string_view server);
/// This machine itself.
[[nodiscard]] bool is_loopback(std::string_view host);

/// Where the server is and whom to trust. Equal ones share connections.
struct Endpoint {
  std::string server;           ///< "https://10.0.0.1:6443", no slash at its end
  std::string ca_pem;           ///< "": the system's authorities
  std::string certificate_pem;  ///< the client's own; "" where a token does
  std::string key_pem;
  std::string tls_server_name;  ///< "": the server's host
  std::string proxy_url;        ///< "": as the environment says
};

struct Transfer {
  Method method = Method::Get;
  std::string path;  ///< "/api/v1/pods?limit=500"
  std::string body;
  std::vector<std::string> headers;      ///< "Accept: application/json"
  std::chrono::milliseconds timeout{0};  ///< 0: it may last, as a watch does
  std::chrono::milliseconds stall{0};    ///< not 0: ended when nothing has come for so long
  size_t body_limit = 0;
  /// Asked as the body of a write is about to leave, which is after start(): false ends it unsent. Unset: it may leave.
  std::function<bool()> may_send;
};

enum class Trouble {
  None,         ///< there is an answer
  Unreachable,  ///< no connection was made
  Untrusted,    ///< TLS failed: nothing was sent, and trying again would not help
  TimedOut,
  Broken,    ///< the connection ended before the answer did
  TooLarge,  ///< the answer is over its limit
};

struct Outcome {
  Trouble trouble = Trouble::None;
  bool was_sent = false;  ///< a part of a write's body has left: without an answer it may have happened
  int status = 0;
  std::optional<std::chrono::milliseconds> retry_after;
  std::string body;     ///< of a stream: only where its status is not 200
  std::string message;  ///< of a trouble
};

}  // namespace trainyard::kube
