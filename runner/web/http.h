#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/curl.h"
#include "web/answer.h"

namespace trainyard::web {

/// Takes bytes of a body as they come. `answer` has its status and headers. Where it returns false no more come.
using Sink = std::function<bool(const Answer& answer, std::span<const char> bytes)>;

struct Question {
  std::string address;
  std::string method = "GET";                ///< or HEAD, PUT, POST, DELETE
  std::vector<std::string> headers{};        ///< "Name: value"; they may hold secrets: nobody prints them
  std::span<const char> body{};              ///< of PUT and POST; it outlives the call
  std::string authorities{};                 ///< a file (PEM) of who may sign certificates; "": the system's
  bool without_proxy = false;                ///< for an address of this machine or of its link
  std::chrono::milliseconds connect{10000};  ///< so long making a connection may take
  std::chrono::milliseconds limit{0};        ///< so long the whole may take; 0: no limit
  std::chrono::milliseconds silence{0};      ///< so long nothing may come or go, in whole seconds; 0: no limit
  Sink sink{};                               ///< takes the body of a 200 or 206; null: Answer::text keeps it
};

/// The header that asks for the bytes from `from` on; none where that is all of them.
std::vector<std::string> range_from(uint64_t from);

/// Asks over connections that are kept. It follows no redirect. Proxies are those of the environment. One thread at a
/// time.
class Http {
 public:
  /// Throws std::runtime_error where libcurl gives no handle.
  Http();

  /// Throws only what the sink throws: what goes wrong is in the answer.
  Answer ask(const Question& question);

 private:
  CurlEasy curl_;
};

}  // namespace trainyard::web
