#pragma once

#include <filesystem>

namespace trainyard {

/// The symbolic link at `path`, or at a folder above it, that leads to nothing; "" where there is none. What makes folders
/// says of such a one that it exists.
std::filesystem::path dangling_link(const std::filesystem::path& path);

}  // namespace trainyard
