#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace trainyard::local {

/// One document of a YAML stream, as kubectl would send it to the API server.
struct Document {
  std::string file;  ///< as the user named it
  Json content;
  std::map<std::string, int> lines;  ///< of each field, by its path with '/' before each part
  int first_line = 1;

  /// "job.yaml:14" of the field at a path as messages write it ("spec.containers[0].name"), else of what is nearest
  /// above it.
  [[nodiscard]] std::string place_of(std::string_view path) const;
};

/// All documents that hold anything. Scalars have the types that kubectl gives them (`0644` is octal, `yes` is true,
/// `2.95e+04` is a whole number), anchors and merge keys are resolved, the items of a List are documents of their own.
/// Throws Refusal, naming file and line, where it is no YAML, a key is given twice or aliases make it too large.
[[nodiscard]] std::vector<Document> read_yaml(const std::string& text, const std::string& file);

/// What a scalar without quotes means.
[[nodiscard]] Json plain_value(const std::string& text);

/// Block style with keys in order; read_yaml() gives the same back.
[[nodiscard]] std::string to_yaml(const Json& json);

}  // namespace trainyard::local
