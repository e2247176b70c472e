#pragma once

#include <stdexcept>
#include <string>

#include "base/json.h"

namespace trainyard::http {

/// A body is not what it should be; `what()` is for the one who sent it.
struct BadBody : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The JSON of a body that anybody may have sent. Throws BadBody where it is none, or nested deeper than any object of
/// the API is (128): who handles it further may recurse.
[[nodiscard]] Json parse_body(const std::string& body);

}  // namespace trainyard::http
