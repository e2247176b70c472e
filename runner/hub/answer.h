#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "hub/name.h"
#include "hub/settings.h"

// What the hub answers, and what is to be done with it. Pure.
namespace trainyard::hub {

/// Why no whole answer came.
enum class Failure {
  None,
  Unreachable,  ///< no connection was made
  Distrusted,   ///< the server's certificate is not trusted
  Cut,          ///< the connection ended or went silent before the end
  TimedOut,     ///< no answer in time
  Stopped,      ///< whoever takes the bytes wanted no more
};

struct Answer {
  long status = 0;                             ///< 0: none came
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string text;                            ///< the body; of one that went to a file, nothing
  Failure failure = Failure::None;             ///< also where a status came, but not the whole body
  std::string reason;                          ///< of the failure

  /// "" where there is no such header. `name` in lower case.
  [[nodiscard]] std::string header(const std::string& name) const;
  [[nodiscard]] bool is_good() const { return failure == Failure::None && status >= 200 && status < 300; }
  [[nodiscard]] bool is_redirect() const { return status >= 300 && status < 400 && !header("location").empty(); }
};

/// No connection was made, which the user can mend, or do without where the cache has what is wanted.
class UnreachableError : public InputError {
  using InputError::InputError;
};

/// Whether the same question may have another answer a moment later.
bool is_worth_retry(const Answer& answer);

/// What a HEAD of a file says of it.
struct FileFacts {
  std::string etag;              ///< the name of its blob: sha256 of a large file, else what git calls it
  std::string commit;            ///< the commit at which it was looked up
  std::optional<uint64_t> size;  ///< bytes
  bool has_sha256 = false;       ///< the etag is the sha256 of its bytes
};

/// Throws InputError, beginning with `what`, where the answer is not the hub's: without a commit, or with an etag that
/// cannot be the name of a file.
FileFacts facts_of(const Answer& answer, const std::string& what);

/// The error that an answer which is neither good nor a redirect stands for: InputError where the user can mend it (no
/// such repository, revision or file; gated; no or a wrong token; UnreachableError), PeerError where a network or
/// a server was lost. `what` is what was asked for: "Qwen/Qwen3-0.6B: model.safetensors".
[[noreturn]] void refuse(const Answer& answer, const Name& name, const std::string& what, const Settings& settings);

}  // namespace trainyard::hub
