#pragma once

#include <stdexcept>

namespace trainyard::api {

/// An object cannot be a PyTorchJob. `what()` names the path of the field, what is there and what is allowed.
struct ParseError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace trainyard::api
