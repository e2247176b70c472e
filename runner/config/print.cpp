#include "config/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "base/text.h"
#include "config/schema.h"

namespace trainyard::config {
namespace {

/// A text that YAML reads back as itself wherever it stands.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (byte < 0x20 || byte == 0x7F)
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  return result + '"';
}

std::string yaml_value(const Key& key, const Config& config) {
  const Value value = key.get(config);
  const bool free_text = std::holds_alternative<std::string>(value) && key.rule.choices.empty();
  return free_text ? quoted(std::get<std::string>(value)) : format_value(value);
}

std::map<std::string, std::string> by_key(std::string_view shared) {
  std::map<std::string, std::string> result;
  for (const std::string& line : split(shared, '\n')) {
    const size_t middle = line.find(" = ");
    if (middle != std::string::npos) result.emplace(line.substr(0, middle), line.substr(middle + 3));
  }
  return result;
}

}  // namespace

std::string print_config(const Loaded& loaded) {
  std::string result;
  for (const SectionHelp& section : sections()) {
    result += section.name + ":\n";
    for (const Key& key : keys()) {
      if (key.section != section.name) continue;
      const std::string line = fmt::format("  {}: {}", key.name, yaml_value(key, loaded.config));
      result += fmt::format("{:<48}  # {}\n", line, shown(loaded.origin(key.full_name())));
    }
  }
  if (!loaded.understood.empty()) result += "\n";
  for (const std::string& line : loaded.understood) result += fmt::format("# Understood as {}\n", line);
  if (!loaded.became.empty()) result += "\n# What the keys of other programs became:\n";
  for (const std::string& line : loaded.became) result += fmt::format("#   {}\n", line);
  return result;
}

std::string shared_text(const Config& config) {
  std::string result;
  for (const Key& key : keys())
    if (key.agreement == Agreement::AllRanks)
      result += fmt::format("{} = {}\n", key.full_name(), yaml_value(key, config));
  return result;
}

std::string hash(const Config& config) {
  // FNV-1a: the ranks of one job prove themselves by token, so this needs to tell mistakes apart, not attacks.
  uint64_t state = 14695981039346656037u;
  for (const char c : shared_text(config)) state = (state ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return fmt::format("{:016x}", state);
}

std::optional<Difference> first_difference(std::string_view mine, std::string_view theirs) {
  const auto here = by_key(mine), there = by_key(theirs);
  const auto value = [](const auto& texts, const std::string& key) {
    const auto found = texts.find(key);
    return found == texts.end() ? std::string("absent") : found->second;
  };
  for (const auto* const texts : {&here, &there})
    for (const auto& entry : *texts)
      if (value(here, entry.first) != value(there, entry.first))
        return Difference{entry.first, value(here, entry.first), value(there, entry.first)};
  return std::nullopt;
}

}  // namespace trainyard::config
