#pragma once

#include <string>

namespace trainyard::local {

/// A UUID of version 4.
[[nodiscard]] std::string random_uid();

/// What the API server adds to a generateName: five letters and digits that are easily told apart.
[[nodiscard]] std::string random_name_end();

}  // namespace trainyard::local
