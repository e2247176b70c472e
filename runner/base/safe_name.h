#pragma once

#include <string>

namespace trainyard {

/// Whether a file of this name, which somebody else gives, may be made below a folder: relative, with no "..", no empty
/// part and nothing unprintable.
bool is_safe(const std::string& file);

}  // namespace trainyard
