#include "metrics/config_watch.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/captured_log.h"
#include "support/support.h"

namespace trainyard::metrics {
namespace {

namespace fs = std::filesystem;

// printf 'training: {lr: 0.1}\n' | sha256sum, cut to 12 digits
constexpr const char* kFirst = "training: {lr: 0.1}\n";
constexpr const char* kSecond = "training: {lr: 0.2}\n";

/// A volume of a ConfigMap as the kubelet makes it: train.yaml -> ..data/train.yaml, ..data -> a folder of its own.
class Volume {
 public:
  explicit Volume(const std::string& text) {
    write(text);
    fs::create_symlink("..data/train.yaml", file());
  }

  /// What the kubelet does some time after the ConfigMap was edited.
  void write(const std::string& text) {
    const std::string version = "..version-" + std::to_string(++versions_);
    fs::create_directory(folder_ / version);
    std::ofstream(folder_ / version / "train.yaml") << text;
    fs::create_symlink(version, folder_ / "..data_tmp");
    fs::rename(folder_ / "..data_tmp", folder_ / "..data");
  }
  [[nodiscard]] fs::path file() const { return folder_ / "train.yaml"; }

 private:
  test::TemporaryFolder folder_;
  int versions_ = 0;
};

}  // namespace

TEST_CASE("config watch: a ConfigMap that is edited while a run goes on differs, until it is put back",
          "[config_watch]") {
  Volume volume(kFirst);
  const test::CapturedLog log;
  ConfigWatch watch({{volume.file().string(), kFirst}});
  CHECK(watch.changed().empty());
  volume.write(kFirst);  // a new version of the same content
  CHECK(watch.changed().empty());
  CHECK(log.text().empty());
  volume.write(kSecond);
  for (int look = 0; look < 2; ++look)
    CHECK(watch.changed() == volume.file().string() + " (sha256 34a561305000)");
  CHECK_THAT(log.text(), Catch::Contains("the configuration has changed since this run read it: " +
                                         volume.file().string() + " (sha256 34a561305000); this run goes on with what"));
  const std::string said = log.text();
  CHECK(std::ranges::count(said, '\n') == 1);
  volume.write(kFirst);
  CHECK(watch.changed().empty());
  CHECK_THAT(log.text(), Catch::Contains("the configuration is again what this run read"));
}

TEST_CASE("config watch: what counts is what was read, though the file changed before the first look",
          "[config_watch]") {
  const Volume volume(kSecond);
  ConfigWatch watch({{volume.file().string(), kFirst}});
  CHECK_THAT(watch.changed(), Catch::Contains("sha256 34a561305000"));
}

TEST_CASE("config watch: a file that is gone is told, one that cannot be read for another reason is not",
          "[config_watch]") {
  const Volume one(kFirst), other(kFirst), folder(kFirst);
  ConfigWatch watch({{one.file().string(), kFirst},
                     {other.file().string(), kSecond},
                     {folder.file().parent_path().string(), kFirst}});
  fs::remove(one.file());
  CHECK(watch.changed() == one.file().string() + " (gone), " + other.file().string() + " (sha256 9d4a00c912e3)");
}

TEST_CASE("config watch: without files nothing has changed", "[config_watch]") {
  CHECK(ConfigWatch().changed().empty());
}

}  // namespace trainyard::metrics
