#include "metrics/folder_claim.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <optional>

#include "base/error.h"
#include "support/captured_log.h"
#include "support/support.h"

namespace trainyard::metrics {
namespace {

using test::CapturedLog;
using test::TemporaryFolder;

TEST_CASE("folder claim: another run that writes there is refused, who has it is named, and after its end it is free",
          "[metrics]") {
  const std::string other = GENERATE("", "another job");  // two runs without a job are not one
  const TemporaryFolder folder;
  std::optional<FolderClaim> first(std::in_place, folder / "runs", other.empty() ? "" : "a job", 1);
  CHECK_THROWS_WITH(FolderClaim(folder / "runs", other, 1),
                    Catch::StartsWith("metrics.dir: ") &&
                        Catch::Contains(fmt::format("another run writes its metrics there, process {} on ", ::getpid())) &&
                        Catch::Contains("choose another folder"));
  CHECK(first->is_held());
  first.reset();
  CHECK_NOTHROW(FolderClaim(folder / "runs", other, 1));
}

TEST_CASE("folder claim: a later start of the same job takes it from one that lingers, which writes no more",
          "[metrics]") {
  const int64_t generation = GENERATE(1, 2);  // the same where a pod was replaced
  const TemporaryFolder folder;
  FolderClaim old_one(folder.path(), "a job", 1);
  const CapturedLog log;
  FolderClaim new_one(folder.path(), "a job", generation);
  CHECK_THAT(log.text(), Catch::Contains("an earlier start of this job") && Catch::Contains("its lines end here"));
  CHECK(new_one.is_held());
  CHECK_FALSE(old_one.is_held());
  CHECK_FALSE(old_one.is_held());
  CHECK_THAT(log.text(), Catch::Contains("a later start of this job writes there now"));
}

TEST_CASE("folder claim: an earlier generation of the job gets nothing", "[metrics]") {
  const TemporaryFolder folder;
  FolderClaim newer(folder.path(), "a job", 3);
  CHECK_THROWS_WITH(FolderClaim(folder.path(), "a job", 2), Catch::Contains("a newer generation of this job"));
  CHECK(newer.is_held());
}

TEST_CASE("folder claim: what a run that was killed left behind, whole or torn, is in nobody's way", "[metrics]") {
  const std::string left = GENERATE("", R"({"job":"another","life":"x"})", "{\"job\":");
  const TemporaryFolder folder;
  std::ofstream(folder / ".run") << left;
  FolderClaim claim(folder.path(), "", 0);
  CHECK(claim.is_held());
}

TEST_CASE("folder claim: a symbolic link to nothing is called one", "[metrics]") {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("/nowhere/at/all", folder / "link");
  CHECK_THROWS_WITH(FolderClaim(folder / "link", "", 0), Catch::Contains("a symbolic link that leads to nothing"));
}

}  // namespace
}  // namespace trainyard::metrics
