#include "local/containers/root.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>

#include "local/manifest/refusal.h"
#include "support/support.h"

using namespace trainyard;
using namespace trainyard::local;
namespace fs = std::filesystem;

namespace {

/// A small host: /usr/bin, /etc/hosts, /bin -> usr/bin, /data; and a volume beside it.
struct Host {
  test::TemporaryFolder folder;
  fs::path root = folder / "host", volume = folder / "volume";

  Host() {
    for (const char* const each : {"usr/bin", "etc", "data"}) fs::create_directories(root / each);
    std::ofstream(root / "etc/hosts") << "x";
    fs::create_symlink("usr/bin", root / "bin");
    fs::create_directories(volume);
    std::ofstream(volume / "file") << "y";
  }
  /// "bind /usr", "folder /a", "link /bin usr/bin", with "volume" for the volume and "ro".
  [[nodiscard]] std::vector<std::string> plan(const std::vector<Mount>& mounts) const {
    std::vector<std::string> lines;
    for (const RootStep& step : plan_root(mounts, root)) {
      const bool is_volume = step.source.starts_with(volume.string());
      if (step.kind == RootStep::Kind::Folder) lines.push_back("folder " + step.path);
      if (step.kind == RootStep::Kind::Link) lines.push_back("link " + step.path + " " + step.source);
      if (step.kind == RootStep::Kind::Bind)
        lines.push_back("bind " + step.path + (is_volume ? " volume" : "") + (step.read_only ? " ro" : ""));
    }
    return lines;
  }
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("plan_root: nothing mounted takes no root", "[root]") {
  CHECK(plan_root({}).empty());
}

TEST_CASE("plan_root: a mount point at the top, beside the machine's own folders", "[root]") {
  const Host host;
  CHECK(host.plan({{"/checkpoints", host.volume}}) ==
        Texts{"link /bin usr/bin", "bind /data", "bind /etc", "bind /usr", "bind /checkpoints volume"});
}

TEST_CASE("plan_root: what is in its place needs no root, but where another mount would hide it", "[root]") {
  const Host host;
  const Mount kept{.at = "/data", .source = host.root / "data", .is_in_place = true};
  CHECK(host.plan({kept}).empty());
  fs::create_directories(host.root / "data/kept");
  const Mount inner{.at = "/data/kept", .source = host.root / "data/kept", .is_in_place = true};
  const auto steps = host.plan({inner, {"/data", host.volume}});
  CHECK(Texts(steps.end() - 2, steps.end()) == Texts{"bind /data volume", "bind /data/kept"});
}

TEST_CASE("plan_root: a mount point that the machine has is bound over", "[root]") {
  const Host host;
  CHECK(host.plan({{"/data", host.volume, true}}) ==
        Texts{"link /bin usr/bin", "bind /etc", "bind /usr", "bind /data volume ro"});
  CHECK(host.plan({{"/usr/bin", host.volume}}) ==
        Texts{"link /bin usr/bin", "bind /data", "bind /etc", "bind /usr", "bind /usr/bin volume"});
}

TEST_CASE("plan_root: a folder that lacks the mount point is put together anew", "[root]") {
  const Host host;
  CHECK(host.plan({{"/etc/deep/config", host.volume}}) == Texts{"link /bin usr/bin", "bind /data", "bind /usr",
                                                                "folder /etc", "bind /etc/hosts", "folder /etc/deep",
                                                                "bind /etc/deep/config volume"});
}

TEST_CASE("plan_root: a mount point behind a link is where the link leads", "[root]") {
  const Host host;
  const auto steps = host.plan({{"/bin/tools", host.volume}});
  CHECK(std::ranges::count(steps, "bind /usr/bin/tools volume") == 1);
  CHECK(std::ranges::count(steps, "link /bin usr/bin") == 1);
}

TEST_CASE("plan_root: mounts inside mounts come after them, their points made in the volume", "[root]") {
  const Host host;
  const auto steps = host.plan({{"/v/a/b", host.volume}, {"/v", host.volume}});
  CHECK(Texts(steps.end() - 2, steps.end()) == Texts{"bind /v volume", "bind /v/a/b volume"});
  CHECK(fs::is_directory(host.volume / "a/b"));
}

TEST_CASE("plan_root: a file is mounted as one", "[root]") {
  const Host host;
  const auto inside =
      host.plan({{"/v", host.volume}, {"/v/file", host.root / "etc/hosts"}, {"/v/new", host.volume / "file"}});
  CHECK(Texts(inside.end() - 3, inside.end()) == Texts{"bind /v volume", "bind /v/file", "bind /v/new volume"});
  CHECK(fs::is_regular_file(host.volume / "new"));
  CHECK(host.plan({{"/etc/hosts", host.volume / "file"}}).back() == "bind /etc/hosts volume");
  CHECK(host.plan({{"/etc/other", host.volume / "file"}}).back() == "bind /etc/other volume");
}

TEST_CASE("plan_root: what cannot be is refused", "[root]") {
  const Host host;
  CHECK_THROWS_WITH(host.plan({{"/v", host.volume}, {"/v/", host.volume}}),
                    Catch::Contains("two volumes are mounted at /v"));
  CHECK_THROWS_WITH(host.plan({{"/v", host.volume, true}, {"/v/none/x", host.volume}}),
                    Catch::Contains("lies in a volume"));
}
