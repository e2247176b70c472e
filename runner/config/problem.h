#pragma once

#include <string>
#include <vector>

namespace trainyard::config {

/// A key that is not taken, and why.
struct Problem {
  std::string message;  ///< with file and line
  std::string key;
  bool is_unknown = false;
};

/// Throws InputError where there are any: one line with the message of the first unknown one, else of the first, and
/// the keys of all others, as who mends a file wants to know them at once.
void refuse(const std::vector<Problem>& problems);

}  // namespace trainyard::config
