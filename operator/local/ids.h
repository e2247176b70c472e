#pragma once

#include <string>

namespace trainyard::local {

/// A UUID of version 4.
[[nodiscard]] std::string random_uid();

}  // namespace trainyard::local
