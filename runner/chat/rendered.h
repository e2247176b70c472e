#pragma once

#include <cstddef>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "chat/rendering.h"

namespace trainyard::chat {

/// What a template makes of its variables.
struct Rendered {
  struct Span {
    size_t begin, end;  ///< bytes of `text`
    bool operator==(const Span&) const = default;
  };
  std::string text;
  std::vector<Span> generated{};  ///< what `generation` covers, outside of macros and block sets
};

struct Settings {
  Limits limits{};
  std::optional<std::tm> now{};     ///< what strftime_now prints; none: it is refused
  const char* instead_of_now = "";  ///< what to do where it is: the end of the message
};

}  // namespace trainyard::chat
