#pragma once

#include <string>

namespace trainyard::dialects {

/// docs/coming-from-pytorch.md: what other programs call an option, and what it is here.
std::string documentation();

}  // namespace trainyard::dialects
