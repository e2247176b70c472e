#include "local/volumes/volumes.h"

#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>

#include "local/containers/root.h"
#include "local/manifest/refusal.h"
#include "support/support.h"

using namespace trainyard;
using namespace trainyard::local;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

struct VolumesCase {
  test::TemporaryFolder folder;
  api::Job job;
  Input input;
  Json pod;

  explicit VolumesCase(const std::string& volumes)
      : pod{{"metadata", {{"name", "j-master-0"}, {"labels", {{"app", "x"}}}}},
            {"spec", {{"volumes", Json::parse(volumes)}}}} {
    job.ns = "default";
    input.config_maps["default/c"] = {{"a.txt", "A"}, {"b.txt", "B"}};
    input.secrets["default/s"] = {{"key", "K"}};
  }
  [[nodiscard]] PodContext context() const { return {.job = job, .pod = pod, .input = input, .node = "here"}; }
  [[nodiscard]] std::vector<Mount> mounts(const Volumes& volumes, const std::string& mounts) const {
    return volumes.mounts_of(Json{{"name", "pytorch"}, {"volumeMounts", Json::parse(mounts)}}, {{"RANK", "3"}});
  }
};

}  // namespace

TEST_CASE("volumes: ConfigMaps, Secrets and the pod's own fields are files, and go with the pod", "[volumes]") {
  const VolumesCase fixture(R"json([
    {"name": "c", "configMap": {"name": "c", "defaultMode": 256}},
    {"name": "s", "secret": {"secretName": "s", "items": [{"key": "key", "path": "deep/k", "mode": 384}]}},
    {"name": "p", "projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "s"}},
       {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]}},
    {"name": "none", "configMap": {"name": "none", "optional": true}}])json");
  fs::path config;
  {
    const Volumes volumes(fixture.context(), fixture.folder.path());
    const auto mounts =
        fixture.mounts(volumes, R"json([{"name": "c", "mountPath": "/c"}, {"name": "s", "mountPath": "/s"},
      {"name": "p", "mountPath": "/p"}, {"name": "c", "mountPath": "/f", "subPath": "a.txt"}])json");
    REQUIRE(mounts.size() == 4);
    config = mounts[0].source;
    CHECK(mounts[0].read_only);
    CHECK(text_of(config / "a.txt") == "A");
    CHECK((fs::status(config / "a.txt").permissions() & fs::perms::all) == fs::perms::owner_read);
    CHECK(text_of(mounts[1].source / "deep/k") == "K");
    CHECK(text_of(mounts[2].source / "key") == "K");
    CHECK(text_of(mounts[2].source / "labels") == "app=\"x\"\n");
    CHECK(mounts[3].source == config / "a.txt");
  }
  CHECK_FALSE(fs::exists(config));
}

TEST_CASE("volumes: an emptyDir goes with the pod, a claim stays", "[volumes]") {
  const std::string empty = GENERATE(R"json({"name": "e", "emptyDir": {}})json", R"json({"name": "e"})json");
  const VolumesCase fixture(
      "[" + empty + R"json(, {"name": "p", "persistentVolumeClaim": {"claimName": "data"}}])json");
  {
    const Volumes volumes(fixture.context(), fixture.folder.path());
    const auto mounts = fixture.mounts(volumes, R"json([{"name": "e", "mountPath": "/e"},
      {"name": "p", "mountPath": "/p", "subPathExpr": "rank-$(RANK)"
  }])json");
    REQUIRE(mounts.size() == 2);
    CHECK(mounts[1].source == fixture.folder.path() / "volumes/data/rank-3");
    CHECK_FALSE(fs::exists(mounts[1].source));
    make_sub_paths(mounts);
    std::ofstream(mounts[1].source / "x") << "kept";
  }
  CHECK(text_of(fixture.folder.path() / "volumes/data/rank-3/x") == "kept");
  CHECK_FALSE(fs::exists(fixture.folder.path() / "pods/j-master-0"));
}

TEST_CASE("volumes: a sub-path that is there when its container starts stays what it is", "[volumes]") {
  const VolumesCase fixture(R"json([{"name": "e", "emptyDir": {}}])json");
  const Volumes volumes(fixture.context(), fixture.folder.path());
  const auto mounts = fixture.mounts(volumes, R"json([{"name": "e", "mountPath": "/a", "subPath": "file"},
    {"name": "e", "mountPath": "/b", "subPath": "deep/folder"}, {"name": "e", "mountPath": "/c"}])json");
  std::ofstream(mounts[0].source) << "written before";
  make_sub_paths(mounts);
  CHECK(text_of(mounts[0].source) == "written before");
  CHECK(fs::is_directory(mounts[1].source));
  const auto below_a_file =
      fixture.mounts(volumes, R"json([{"name": "e", "mountPath": "/a", "subPath": "file/x"}])json");
  CHECK_THROWS_WITH(make_sub_paths(below_a_file), Catch::Contains("file/x cannot be made: "));
}

TEST_CASE("volumes: what is in its place already needs no mount", "[volumes]") {
  const VolumesCase fixture(
      R"json([{"name": "h", "hostPath": {"path": "/tmp"}}, {"name": "m", "emptyDir": {"medium": "Memory"}}])json");
  const Volumes volumes(fixture.context(), fixture.folder.path());
  const auto is_in_place = [&](const std::string& mount) {
    return plan_root(fixture.mounts(volumes, "[" + mount + "]")).empty();
  };
  CHECK(is_in_place(R"json({"name": "h", "mountPath": "/tmp/"}, {"name": "m", "mountPath": "/dev/shm"})json"));
  CHECK_FALSE(is_in_place(R"json({"name": "h", "mountPath": "/tmp", "readOnly": true})json"));
}

TEST_CASE("volumes: a sub-path of a hostPath is made at its own path, too, and needs no mount there", "[volumes]") {
  const test::TemporaryFolder host;
  const std::string disk = host.path().string();
  const VolumesCase fixture(R"json([{"name": "h", "hostPath": {"path": ")json" + disk + R"json("}}])json");
  const Volumes volumes(fixture.context(), fixture.folder.path());
  const auto mounts = fixture.mounts(
      volumes, R"json([{"name": "h", "subPath": "run/1", "mountPath": ")json" + disk + R"json(/run/1"}])json");
  make_sub_paths(mounts);
  CHECK(fs::is_directory(host / "run/1"));
  CHECK(plan_root(mounts).empty());
}

TEST_CASE("volumes: a claim that names a PersistentVolume of the input is that folder", "[volumes]") {
  VolumesCase fixture(R"json([{"name": "p", "persistentVolumeClaim": {"claimName": "data"}}])json");
  fixture.input.claims["default/data"] = Json{{"spec", {{"volumeName", "disk"}}}};
  fixture.input.volumes["disk"] = Json{{"spec", {{"hostPath", {{"path", "/tmp"}}}}}};
  const Volumes volumes(fixture.context(), fixture.folder.path());
  CHECK(fixture.mounts(volumes, R"json([{"name": "p", "mountPath": "/p"}])json").at(0).source == "/tmp");
}

TEST_CASE("volumes: what takes a cluster or leads nowhere is refused by name", "[volumes]") {
  struct Row {
    const char* volume;
    const char* problem;
  };
  const auto row = GENERATE(values<Row>({
      {R"json({"name": "v", "nfs": {"server": "x", "path": "/"}})json", "volume 'v' is a nfs, which takes a cluster"},
      {R"json({"name": "v", "configMap": {"name": "none"}})json", "ConfigMap 'none' is not in the input"},
      {R"json({"name": "v", "configMap": {"name": "c", "items": [{"key": "z", "path": "z"}]}})json", "has no key 'z'"},
      {R"json({"name": "v", "configMap": {"name": "c", "items": [{"key": "a.txt", "path": "../z"}]}})json",
       "must stay inside it"},
      {R"json({"name": "v", "hostPath": {"path": "/nowhere/at/all"}})json", "hostPath /nowhere/at/all is not there"},
      {R"json({"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}})json",
       "projects what takes a cluster"},
  }));
  CAPTURE(row.volume);
  const VolumesCase fixture(std::string("[") + row.volume + "]");
  CHECK_THROWS_WITH(Volumes(fixture.context(), fixture.folder.path()), Catch::Contains(row.problem));
}

TEST_CASE("volumes: a mount that cannot be is refused", "[volumes]") {
  const VolumesCase fixture(R"json([{"name": "e", "emptyDir": {}}, {"name": "c", "configMap": {"name": "c"}}])json");
  const Volumes volumes(fixture.context(), fixture.folder.path());
  struct Row {
    const char* mount;
    const char* problem;
  };
  const auto row = GENERATE(values<Row>({
      {R"json({"name": "x", "mountPath": "/x"})json", "mounts 'x', which is none of the pod's volumes"},
      {R"json({"name": "e", "mountPath": "x"})json", "must be an absolute path"},
      {R"json({"name": "e", "mountPath": "/"})json", "must be an absolute path below '/'"},
      {R"json({"name": "e", "mountPath": "/x", "subPath": "../y"})json", "must stay inside its volume"},
      {R"json({"name": "e", "mountPath": "/x", "subPathExpr": "a/$(NONE)"})json",
       "'a/$(NONE)' needs the variable NONE"},
      {R"json({"name": "c", "mountPath": "/x", "subPath": "none"})json", "has no 'none'"},
  }));
  CHECK_THROWS_WITH(fixture.mounts(volumes, std::string("[") + row.mount + "]"), Catch::Contains(row.problem));
}
