#include "config/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "base/text.h"

namespace trainyard::config {

const Key* find_key(std::string_view full_name) {
  const auto found = std::ranges::find_if(keys(), [&](const Key& key) { return key.full_name() == full_name; });
  return found == keys().end() ? nullptr : &*found;
}

std::string suggest_key(std::string_view section, std::string_view name, std::string_view prefix) {
  std::vector<std::string> here;
  const Key* elsewhere = nullptr;
  for (const Key& key : keys()) {
    if (key.section == section) here.push_back(key.name);
    if (key.name == name) elsewhere = &key;
  }
  if (elsewhere) return fmt::format("did you mean {}{}?", prefix, elsewhere->full_name());
  const auto near = nearest(name, here);
  return near ? fmt::format("did you mean {}{}.{}?", prefix, section, *near) : "";
}

std::string suggest_section(std::string_view section) {
  std::vector<std::string> known;
  for (const SectionHelp& each : sections()) known.push_back(each.name);
  const auto near = nearest(section, known);
  return near && *near != section ? fmt::format("did you mean {}?", *near) : "";
}

}  // namespace trainyard::config
