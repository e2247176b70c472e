#pragma once

#include <string>

// What people and editors read about the schema, made from it.
namespace trainyard::config {

/// The configuration part of `trainyard train --help`: every key by section, with its type, range and default.
std::string help_text();

/// docs/configuration.md.
std::string documentation();

/// A JSON Schema (draft 2020-12) of the YAML file, for editors.
std::string json_schema();

}  // namespace trainyard::config
