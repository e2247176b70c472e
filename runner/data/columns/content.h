#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "data/columns/damage.h"

namespace trainyard::data {

/// The content of a table's file.
struct FileContent {
  std::string name;  ///< what messages call it
  std::string_view bytes;
  std::shared_ptr<const void> memory;  ///< in which the bytes lie
};

/// Calls `act`; what it finds wrong is told with the name of the file, as InputError.
template <class Act>
auto in_file(const std::string& name, const Act& act) {
  try {
    return act();
  } catch (const Damage& damage) {
    throw InputError(fmt::format("{}: is damaged: {}; get it again", name, damage.what()));
  } catch (const NotOffered& error) {
    throw InputError(fmt::format("{}: {}", name, error.what()));
  }
}

}  // namespace trainyard::data
