#pragma once

#include <curl/curl.h>

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

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
  template <auto Destroy>
  struct Destroyer {
    void operator()(auto* handle) const noexcept { static_cast<void>(Destroy(handle)); }
  };
  struct Kept {
    std::string text;
    size_t most;
  };
  static size_t keep_beginning(char* data, size_t, size_t size, void* kept);

  const size_t most_answer_;
  std::unique_ptr<CURL, Destroyer<curl_easy_cleanup>> curl_;
  std::unique_ptr<curl_slist, Destroyer<curl_slist_free_all>> headers_;
};

}  // namespace trainyard::metrics
