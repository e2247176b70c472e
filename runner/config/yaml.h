#pragma once

#include <vector>

#include "config/setting.h"

namespace trainyard::config {

/// The settings in `source`, in file order, each of its key's type and range. Throws InputError, one line that begins
/// with file and line, for malformed YAML, unknown or repeated names and values that do not fit.
std::vector<Setting> read_yaml(const YamlText& source);

}  // namespace trainyard::config
