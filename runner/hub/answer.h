#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "hub/name.h"
#include "hub/settings.h"
#include "web/answer.h"

// What the hub answers, and what is to be done with it. Pure.
namespace trainyard::hub {

using web::Answer;
using web::Failure;

/// No connection was made, which the user can mend, or do without where the cache has what is wanted.
class UnreachableError : public InputError {
  using InputError::InputError;
};

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
