#include "base/links.h"

#include <system_error>

namespace trainyard {
namespace fs = std::filesystem;

fs::path dangling_link(const fs::path& path) {
  std::error_code ignored;
  fs::path whole;
  for (const fs::path& part : path) {
    whole /= part;
    if (fs::is_symlink(whole, ignored) && !fs::exists(whole, ignored)) return whole;
  }
  return {};
}

}  // namespace trainyard
