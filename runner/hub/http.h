#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "common/curl.h"
#include "hub/answer.h"

namespace trainyard::hub {

/// Takes bytes of a body as they come. `answer` has its status and headers. Where it returns false no more come.
using Sink = std::function<bool(const Answer& answer, std::span<const char> bytes)>;

struct Question {
  std::string address;
  std::string authorities{};                 ///< a file (PEM) of who may sign certificates; "": the system's
  std::string token{};                       ///< sent as it is: who asks has looked whose address it is
  bool only_headers = false;                 ///< HEAD
  uint64_t from = 0;                         ///< of the file's bytes, those from here on
  std::chrono::milliseconds connect{10000};  ///< so long making a connection may take
  std::chrono::milliseconds limit{0};        ///< so long the whole may take; 0: no limit
  std::chrono::milliseconds silence{0};      ///< so long nothing may come, in whole seconds; 0: no limit
  Sink sink{};                               ///< takes the body of a 200 or 206; null: Answer::text keeps it
};

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

}  // namespace trainyard::hub
