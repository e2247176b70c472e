#pragma once

#include <functional>
#include <string>

#include "hub/answer.h"
#include "hub/files.h"
#include "hub/name.h"
#include "hub/settings.h"
#include "web/http.h"

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
  Answer bytes(const Name& name, const std::string& commit, const std::string& file, uint64_t from,
               const web::Sink& sink);

  [[nodiscard]] const Settings& settings() const { return settings_; }

 private:
  enum class Redirects { OwnOrigin, All };  ///< which are followed
  Answer follow(web::Question question, Redirects redirects, const Name& name);
  Answer ask_patiently(const web::Question& question, const Name& name);

  const Settings& settings_;
  web::Http http_;
  bool has_told_of_new_name_ = false;
};

}  // namespace trainyard::hub
