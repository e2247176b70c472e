#include "data/columns/record_rows.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/text.h"
#include "data/columns/damage.h"

namespace trainyard::data {

void add_json_text(std::string& json, std::string_view text) {
  json += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\')
      json += '\\', json += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      fmt::format_to(std::back_inserter(json), "\\u{:04x}", static_cast<unsigned>(c));
    else
      json += c;
  }
  json += '"';
}

void add_json_number(std::string& json, double number) {
  std::isfinite(number) ? fmt::format_to(std::back_inserter(json), "{}", number), void() : void(json += "null");
}

void require_row_size(std::string_view json) {
  if (json.size() > kLargestRow)
    throw NotOffered(fmt::format("has a row of more than {} as JSON", human_bytes(kLargestRow)));
}

}  // namespace trainyard::data
