#include "checkpoint/volume.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;

bool is_octal(char c) {
  return c >= '0' && c <= '7';
}

/// The kernel writes space, tab, newline and backslash as \040, \011, \012 and \134.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (size_t at = 0; at < text.size(); ++at) {
    const std::string_view code = text.substr(at).substr(0, 4);
    if (code.size() == 4 && code[0] == '\\' && std::ranges::all_of(code.substr(1), is_octal)) {
      plain += static_cast<char>((code[1] - '0') * 64 + (code[2] - '0') * 8 + (code[3] - '0'));
      at += 3;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

/// "36 35 98:0 /root /point rw,noatime master:1 … - ext3 /dev/sda rw": proc(5). How many fields come before the dash
/// differs.
std::optional<Mount> parse_line(std::string_view line) {
  const std::vector<std::string> fields = split(line, ' ');
  const auto dash = std::ranges::find(fields, "-");
  if (dash - fields.begin() < 6 || fields.end() - dash < 2) return std::nullopt;
  return Mount{.point = unescaped(fields[4]), .root = unescaped(fields[3]), .type = dash[1]};
}

bool holds(const fs::path& point, const fs::path& folder) {
  return std::ranges::mismatch(point, folder).in1 == point.end() || point == "/";
}

}  // namespace

std::optional<Mount> mount_of(std::string_view mountinfo, const fs::path& folder) {
  std::optional<Mount> found;
  for (const std::string& line : split(mountinfo, '\n')) {
    auto mount = parse_line(line);
    if (!mount || !holds(mount->point, folder)) continue;
    if (!found || mount->point.size() >= found->point.size()) found = std::move(mount);
  }
  return found;
}

std::optional<std::string> ends_with_pod(const Mount& mount) {
  constexpr std::array<std::string_view, 2> kMemory{"tmpfs", "ramfs"};
  if (mount.root.find("/kubernetes.io~empty-dir/") != std::string::npos) return "an emptyDir";
  if (std::ranges::find(kMemory, mount.type) != kMemory.end()) return fmt::format("memory ({})", mount.type);
  // A container's root need not be an overlay: there are snapshotters that copy.
  if (mount.point == "/" || mount.type == "overlay")
    return fmt::format("the container's own file system ({})", mount.type);
  return std::nullopt;
}

std::optional<std::string> volume_warning(const fs::path& folder) {
  std::string mountinfo;
  try {
    mountinfo = read_file("/proc/self/mountinfo");
  } catch (const InputError&) {  // no /proc: nothing to tell from
    return std::nullopt;
  }
  std::error_code failed;
  const fs::path real = fs::weakly_canonical(fs::absolute(folder), failed);
  if (failed) return std::nullopt;  // the first write will say why
  const auto mount = mount_of(mountinfo, real);
  const auto where = mount ? ends_with_pod(*mount) : std::nullopt;
  if (!where) return std::nullopt;
  return fmt::format(
      "checkpoint.dir: {} is in {}, which goes with this pod: what is saved there is lost when the pod is deleted or "
      "made anew, and training begins again at step 0. Mount a claim there, as kustomize/components/claim does",
      folder.string(), *where);
}

}  // namespace trainyard::checkpoint
