#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/load.h"

namespace trainyard::config {

/// The whole configuration as YAML, each value with a comment that tells where it came from, and
/// what other programs' keys became. Loads again to the same.
std::string print_config(const Loaded& loaded);

/// One line "section.key = value" for each key that all ranks must agree on (schema.h: Agreement).
std::string shared_text(const Config& config);

/// 16 hex digits over shared_text: equal on all ranks of a sane job. Ranks compare it through the store at the start.
std::string hash(const Config& config);

/// The first key in which two shared_texts differ.
struct Difference {
  std::string key;
  std::string mine;  ///< "absent" where the other build has a key that this one lacks
  std::string theirs;
};
std::optional<Difference> first_difference(std::string_view mine, std::string_view theirs);

}  // namespace trainyard::config
