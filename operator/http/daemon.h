#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "common/unique_fd.h"
#include "http/deadlines.h"
#include "http/message.h"

struct MHD_Connection;
struct MHD_Daemon;

namespace trainyard::http {

/// What a TLS server shows: PEM, the leaf first. The key fits the leaf.
struct Identity {
  std::string chain_pem, key_pem;
};

struct Limits {
  size_t body_bytes = 64 * 1024;
  size_t all_bodies_bytes = 64 << 20;  ///< of requests on their way together; beyond, 503
  size_t header_bytes = 16 * 1024;     ///< and what a connection costs at least, beside TLS's own
  unsigned connections = 1024;         ///< never more than the open files of this process leave room for
  unsigned threads = 1;                ///< that call the handler
  std::chrono::milliseconds request_time = std::chrono::seconds(20);  ///< to send a request whole and take its answer
  /// The time between two requests. It is longer than the API server keeps idle connections (90 s), which so is the one
  /// to close them.
  std::chrono::milliseconds idle_time = std::chrono::seconds(120);
};

/// libmicrohttpd on a listening socket with one identity. Does not move: the library holds its address.
class Daemon {
 public:
  /// Borrows `handler` and `deadlines`; `listening` stays the caller's. Throws std::runtime_error where the library
  /// does not start: with an identity that it cannot use.
  Daemon(int listening, const Handler& handler, Deadlines& deadlines, const Limits& limits,
         const std::optional<Identity>& identity);
  ~Daemon();  ///< closes all connections; waits for handlers under way
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Takes no more connections; those that are open end after their next answer.
  void drain();
  [[nodiscard]] unsigned connections() const;

 private:
  struct Exchange;
  struct Calls;  ///< the library's callbacks
  void start(int listening, const std::optional<Identity>& identity);
  int on_part(MHD_Connection* connection, Exchange& exchange, const char* method, const char* url, const char* data,
              size_t* size);
  void keep(Exchange& exchange, const char* data, size_t size);
  void drop(Exchange& exchange);
  int answer(MHD_Connection* connection, Exchange& exchange, const char* method, const char* url);
  int send(MHD_Connection* connection, const Response& response) const;

  const Handler& handler_;
  Deadlines& deadlines_;
  const Limits limits_;
  std::atomic<bool> draining_ = false;
  std::atomic<size_t> bodies_bytes_ = 0;
  UniqueFd quiesced_;  ///< what drain() got back from the library, to be closed after it
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace trainyard::http
