#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "common/curl.h"

namespace trainyard::metrics {

/// POST requests to one address, over a connection that is kept. One thread at a time.
class WebPost {
 public:
  struct Answer {
    long status = 0;             ///< 0: none came
    bool is_distrusted = false;  ///< none came as the server's certificate is not one that is trusted
    std::string text;            ///< the body's beginning; where none came, why
    [[nodiscard]] bool is_taken() const { return status >= 200 && status < 300; }
    /// "HTTP 404: no such job"
    [[nodiscard]] std::string failure() const;
  };

  /// It keeps `most_answer` bytes of an answer's body. Throws std::runtime_error where libcurl gives no handle.
  WebPost(const std::string& url, const std::vector<std::string>& headers, size_t most_answer);

  /// Certificates must be signed by one of these (PEM); "": by one of the system's.
  void trust(const std::string& authorities);
  /// This is for questions that hold nothing secret and whose answers prove themselves.
  void trust_anyone();

  /// `call_off` ends a request that is under way.
  Answer send(const std::string& body, std::chrono::milliseconds timeout, const std::stop_token& call_off);

 private:
  struct Kept {
    std::string text;
    size_t most;
  };
  static size_t keep_beginning(char* data, size_t, size_t size, void* kept);

  const size_t most_answer_;
  CurlEasy curl_;
  CurlList headers_;
};

}  // namespace trainyard::metrics
