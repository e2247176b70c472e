#pragma once

#include <yaml-cpp/yaml.h>

#include "config/load.h"

namespace trainyard::config {

/// The one document of `source`; a null node where it is empty. JSON is YAML, and so has line numbers here too.
/// Throws InputError, one line that begins with file and line, for what is not UTF-8, malformed, or two documents.
YAML::Node parse_yaml(const YamlText& source);

}  // namespace trainyard::config
