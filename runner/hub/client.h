#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "hub/answer.h"
#include "hub/files.h"
#include "hub/http.h"
#include "hub/name.h"
#include "hub/settings.h"

namespace trainyard::hub {

/// What a repository is at a revision.
struct Repository {
  std::string commit;  ///< 40 hexadecimal digits
  FileNames files;
};

/// Asks the hub. The token goes to the origin of settings.endpoint alone, whatever a redirect says. What may pass (a
/// cut connection, HTTP 429 and 5xx) is asked again, a few times. One thread at a time.
class Client {
 public:
  /// `settings` outlive it.
  explicit Client(const Settings& settings) : settings_(settings) {}

  /// What name.revision is now. Throws as refuse() says, and InputError for an answer that is none of the hub's.
  Repository look_up(const Name& name);

  /// Of a file at `commit`. Throws the same.
  FileFacts facts(const Name& name, const std::string& commit, const std::string& file);

  /// The bytes of a file at `commit` from `from` on, to `sink`, with one try. The answer is the last of its redirects.
  Answer bytes(const Name& name, const std::string& commit, const std::string& file, uint64_t from, const Sink& sink);

  [[nodiscard]] const Settings& settings() const { return settings_; }

 private:
  enum class Redirects { OwnOrigin, All };  ///< which are followed
  Answer follow(Question question, Redirects redirects, const Name& name);
  Answer ask_patiently(const Question& question, const Name& name);

  const Settings& settings_;
  Http http_;
  bool has_told_of_new_name_ = false;
};

/// How long to wait before try number `tries` (from 1) after `answer`: longer each time, or as the server says.
std::chrono::milliseconds pause_before(int tries, const Answer& answer);

/// So many tries in a row may bring nothing.
inline constexpr int kMostTries = 5;

}  // namespace trainyard::hub
