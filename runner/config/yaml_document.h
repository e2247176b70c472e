#pragma once

#include <yaml-cpp/yaml.h>

#include <vector>

#include "config/setting.h"

namespace trainyard::config {

/// The one document of `source`; a null node where it is empty. JSON is YAML, and so has line numbers here too.
/// Throws InputError, one line that begins with file and line, for what is not UTF-8, malformed, or two documents.
YAML::Node parse_yaml(const YamlText& source);

struct YamlEntry {
  YAML::Node name, value;
};

/// The entries of a mapping, its own first, then those that it takes from others by merge keys (`<<: *defaults`, or a
/// list of such): a name that it has itself, or that an earlier one gave, is not taken. Throws InputError, as above, for
/// a merge key of anything but mappings.
std::vector<YamlEntry> entries_of(const YamlText& source, const YAML::Node& mapping);

}  // namespace trainyard::config
