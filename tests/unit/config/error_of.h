#pragma once

#include <string>

#include "base/error.h"

namespace trainyard::config {

/// The message of the InputError that `action` ends with; "no error" where it does not.
template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace trainyard::config
