#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include "config/schema.h"

// What the sources of a configuration give: texts, and the values in them.
namespace trainyard::config {

/// YAML text and the name that its errors carry.
struct YamlText {
  std::string name;
  std::string text;
};

// Sources by strength: defaults (also what another program has by default), files in their order from 1, a file that a
// flag names, flags. A value from a stronger source goes before one from a weaker source.
constexpr size_t kDefaultLayer = 0;
constexpr size_t kNamedFileLayer = std::numeric_limits<size_t>::max() - 1;
constexpr size_t kFlagLayer = std::numeric_limits<size_t>::max();

/// `entries` as those of a source of this strength.
template <typename Entries>
Entries on_layer(Entries entries, size_t layer) {
  for (auto& entry : entries) entry.layer = layer;
  return entries;
}

/// One value to be set, and from where.
struct Setting {
  const Key* key;
  Value value;
  std::string origin;
  size_t layer = kDefaultLayer;
};

}  // namespace trainyard::config
