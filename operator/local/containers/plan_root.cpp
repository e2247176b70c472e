#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "local/containers/root.h"
#include "local/manifest/refusal.h"

namespace trainyard::local {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxSteps = 20'000;  // below the kernel's limit of mounts in a namespace

/// The mount points as a tree of path components.
struct Place {
  const Mount* mount = nullptr;
  std::map<std::string, Place> below;
};

class Planner {
 public:
  explicit Planner(const fs::path& host) : host_(host) {}

  /// A folder of the new root: all that the machine has there, but what `place` changes.
  void fill(const std::string& path, const Place& place) {
    std::error_code error;
    std::vector<fs::directory_entry> entries;
    for (fs::directory_iterator it(on_host(path), error), end; !error && it != end; it.increment(error))
      entries.push_back(*it);
    std::ranges::sort(entries);
    for (const fs::directory_entry& entry : entries)
      if (const std::string name = entry.path().filename(); !place.below.contains(name)) keep(path + "/" + name, entry);
    for (const auto& [name, below] : place.below) put(path + "/" + name, below);
  }

  std::vector<RootStep> steps;

 private:
  [[nodiscard]] fs::path on_host(const std::string& path) const { return host_ / fs::path(path).relative_path(); }

  void add(RootStep step) {
    if (steps.size() == kMaxSteps)
      throw Refusal(
          fmt::format("mounting at {} takes more than {} bind mounts; mount elsewhere", step.path, kMaxSteps));
    steps.push_back(std::move(step));
  }

  void keep(const std::string& path, const fs::directory_entry& entry) {
    if (entry.is_symlink())
      add({RootStep::Kind::Link, path, fs::read_symlink(entry.path()).string()});
    else
      add({RootStep::Kind::Bind, path, entry.path().string()});
  }

  void put(const std::string& path, const Place& place) {
    if (place.mount) {
      add({RootStep::Kind::Bind, path, place.mount->source.string(), place.mount->read_only});
      for (const auto& [name, below] : place.below) put_inside(path, name, below, *place.mount);
    } else if (has_all_points(path, place)) {
      add({RootStep::Kind::Bind, path, on_host(path).string()});
      for (const auto& [name, below] : place.below) put(path + "/" + name, below);
    } else {
      add({RootStep::Kind::Folder, path, ""});
      fill(path, place);
    }
  }

  /// A mount below another one: its mount point is made in that volume, as container runtimes do.
  void put_inside(const std::string& path, const std::string& name, const Place& place, const Mount& outer) {
    const fs::path point = outer.source / name;
    if (!fs::exists(point)) {
      if (outer.read_only)
        throw Refusal(fmt::format("{}/{} cannot be mounted: {} lies in a volume without it", path, name, path));
      if (place.mount && !fs::is_directory(place.mount->source))
        std::ofstream(point).flush();
      else
        fs::create_directories(point);
    }
    if (place.mount) {
      put(path + "/" + name, place);
      return;
    }
    const Mount inner{path + "/" + name, point, outer.read_only};
    for (const auto& [next, below] : place.below) put_inside(path + "/" + name, next, below, inner);
  }

  /// Whether the machine itself has every mount point below: then nothing need be put together.
  [[nodiscard]] bool has_all_points(const std::string& path, const Place& place) const {
    return fs::is_directory(on_host(path)) && std::ranges::all_of(place.below, [&](const auto& entry) {
             const std::string point = path + "/" + entry.first;
             if (!entry.second.mount) return has_all_points(point, entry.second);
             return fs::exists(on_host(point)) &&
                    fs::is_directory(on_host(point)) == fs::is_directory(entry.second.mount->source);
           });
  }

  fs::path host_;
};

Place tree_of(const std::vector<Mount>& mounts, const fs::path& host) {
  Place root;
  for (const Mount& mount : mounts) {
    const fs::path at = fs::path(mount.at).lexically_normal().relative_path();
    const fs::path real = fs::weakly_canonical(host / at).lexically_relative(fs::weakly_canonical(host));
    Place* place = &root;
    for (const fs::path& part : real)
      if (!part.empty()) place = &place->below[part.string()];
    if (place->mount) throw Refusal(fmt::format("two volumes are mounted at {}", mount.at));
    place->mount = &mount;
  }
  return root;
}

}  // namespace

void check_places(const std::vector<Mount>& mounts, const fs::path& host) {
  static_cast<void>(tree_of(mounts, host));
}

std::vector<RootStep> plan_root(const std::vector<Mount>& mounts, const fs::path& host) {
  if (std::ranges::all_of(mounts, &Mount::is_in_place)) return {};
  Planner planner(host);
  planner.fill("", tree_of(mounts, host));
  return std::move(planner.steps);
}

}  // namespace trainyard::local
