#pragma once

#include <string>

namespace trainyard::kube {

/// The text without the white space at its end: what editors and `echo` leave in files.
[[nodiscard]] inline std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace trainyard::kube
