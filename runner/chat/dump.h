#pragma once

#include <string>

#include "chat/value.h"

namespace trainyard::chat {

/// How Python's json.dumps lays JSON out.
struct DumpStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent{};  ///< what one level is indented by; none: all in one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

/// Throws InputError for what json.dumps does not take.
std::string dump_json(const Value& value, const DumpStyle& style, Rendering& rendering);

}  // namespace trainyard::chat
