#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "s3/answer.h"
#include "s3/credentials.h"
#include "s3/name.h"
#include "s3/settings.h"
#include "web/http.h"

namespace trainyard::s3 {

/// Retries of all requests of a client together, as the AWS SDKs' standard mode counts them: a request that succeeds
/// gives back what it took, so a server that is down is left alone soon, and one that errs now and then is asked again.
class RetryBudget {
 public:
  /// Whether one more try may be made.
  bool take() EXCLUDES(mutex_);
  /// After a request that succeeded, having taken `taken`.
  void give_back(int taken) EXCLUDES(mutex_);

 private:
  static constexpr int kMost = 500, kRetry = 5, kReward = 1;
  Mutex mutex_;
  int left_ GUARDED_BY(mutex_) = kMost;
};

/// What must hold for an object to be written.
struct Condition {
  bool is_absent = false;  ///< If-None-Match: *
  std::string etag;        ///< If-Match; "": none
};

/// An object of which all is in memory.
struct Text {
  std::string bytes, etag;
};

/// A part of an object that is written in parts.
struct Part {
  int number = 0;  ///< from 1
  std::string etag;
};

/// Asks a server of S3. Each try is signed anew. What may pass (a cut connection, HTTP 429 and 5xx, SlowDown, bytes
/// that were changed on the way) is asked again, settings.attempts times at most, within a budget of all requests
/// together. All throw as refuse() says. Threads may call at once: each request has a connection of its own.
class Client {
 public:
  explicit Client(Settings settings) : settings_(std::move(settings)), credentials_(settings_) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// None where there is no such object.
  std::optional<Facts> head(const Name& name);

  /// Bytes of an object from `from` on, as long as it is the one of `etag`, to `sink`, with one try.
  web::Answer bytes(const Name& name, const std::string& etag, uint64_t from, const web::Sink& sink);

  /// All of an object of at most `most_bytes`; none where there is none.
  std::optional<Text> get(const Name& name, size_t most_bytes);

  /// Some bytes of an object, as long as it is the one of `etag`. Throws InputError where it is not, or has fewer.
  std::string range(const Name& name, const std::string& etag, uint64_t from, size_t bytes);

  /// Writes an object, of which the server checks the SHA-256. The new etag; none where `condition` did not hold, which
  /// after a lost answer may be because this very request was carried out: who asks looks what is there.
  std::optional<std::string> put(const Name& name, std::span<const char> bytes, const Condition& condition = {});

  /// All objects whose keys begin with name.key, in the order of their keys; a million at most.
  std::vector<Object> list(const Name& name);

  /// No error where there is none.
  void remove(const Name& name);

  /// An object in parts: nothing is there until complete(), and then all of it. Parts but the last have 5 MiB or more.
  std::string begin_parts(const Name& name);
  Part put_part(const Name& name, const std::string& upload, int number, std::span<const char> bytes);
  void complete(const Name& name, const std::string& upload, const std::vector<Part>& parts);
  void abort(const Name& name, const std::string& upload);

  /// Throws as the answer stands for, which is not good.
  [[noreturn]] void refuse(const web::Answer& answer, const std::string& what);

  [[nodiscard]] const Settings& settings() const { return settings_; }

 private:
  using Query = std::vector<std::pair<std::string, std::string>>;
  struct Asked {
    std::string method;
    Name name;
    Query query{};
    std::map<std::string, std::string, std::less<>> headers{};  ///< names in lower case
    std::span<const char> body{};
    web::Sink sink{};
  };
  web::Answer try_once(const Asked& asked, const std::string& payload, const Credentials& credentials);
  web::Answer ask(const Asked& asked);
  std::unique_ptr<web::Http> take_connection() EXCLUDES(mutex_);
  void keep_connection(std::unique_ptr<web::Http> http) EXCLUDES(mutex_);

  const Settings settings_;
  CredentialChain credentials_;
  RetryBudget budget_;
  Mutex mutex_;
  std::vector<std::unique_ptr<web::Http>> idle_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::s3
