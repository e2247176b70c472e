#pragma once

#include <string>
#include <string_view>

namespace trainyard {

/// The text with the capital letters of ASCII as small ones.
inline std::string lowercase(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

}  // namespace trainyard
