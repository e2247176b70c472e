#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace trainyard::api {

/// A row of a table of the conformance kit, and what was recorded of the reference for it.
struct GoldenRow {
  std::string name;
  Json object;
  Json old_object;  ///< null on creation
  Json recorded;
};

/// The rows of <data>/../conformance/cases/<name>.yaml with <data>/pytorchjob-golden/<name>.json; none without the
/// data.
std::vector<GoldenRow> golden_rows(const std::string& name);

}  // namespace trainyard::api
