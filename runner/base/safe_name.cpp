#include "base/safe_name.h"

#include <algorithm>

#include "base/text.h"

namespace trainyard {

bool is_safe(const std::string& file) {
  const auto is_printable = [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != 0x7F && c != '\\'; };
  const auto is_part = [](const std::string& part) { return !part.empty() && part != "." && part != ".."; };
  return !file.empty() && file.size() < 1024 && std::ranges::all_of(file, is_printable) &&
         std::ranges::all_of(split(file, '/'), is_part);
}

}  // namespace trainyard
