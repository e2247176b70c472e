#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.h"

namespace trainyard::dialects {

/// One key as somebody wrote it.
struct Entry {
  std::string key;     ///< with its sections: "fsdp_config.fsdp_version"
  std::string value;   ///< as text; a list is "[a, b]", a section without keys "{}", nothing "null"
  std::string origin;  ///< "accelerate.yaml:7", "--lr", or whose default it is
  bool is_default = false;
  size_t layer = config::kDefaultLayer;
};

/// The entries stand in the order of the file.
using Document = std::vector<Entry>;

/// The entry of `key`; null where there is none.
const Entry* find(const Document& document, std::string_view key);
/// Its value; `otherwise` where there is none.
std::string value_of(const Document& document, std::string_view key, std::string_view otherwise);

/// The keys of a YAML or JSON file, those of nested mappings with the names of these before them.
/// Throws InputError that begins with file and line: malformed, not a mapping, a key given twice.
Document read_document(const config::YamlText& source);

/// The same of a TOML file.
Document read_toml(const config::YamlText& source);

/// Whether the mapping of a YAML or JSON file has `key`, whatever else is wrong with it. Throws InputError where it is
/// malformed.
bool has_key(const config::YamlText& source, const char* key);

}  // namespace trainyard::dialects
