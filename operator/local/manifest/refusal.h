#pragma once

#include <stdexcept>

namespace trainyard::local {

/// What the user can mend: `what()` says where, what, and what to do. The program's exit code is then 2.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace trainyard::local
