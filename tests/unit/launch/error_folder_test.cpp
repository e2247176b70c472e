#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "launch/error_folder.h"
#include "support/support.h"

namespace trainyard::launch {
namespace {
namespace fs = std::filesystem;

/// The folder that a launcher leaves which is killed.
fs::path left_by_a_killed_launcher(const fs::path& parent) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const ErrorFolder folder(parent);
    static_cast<void>(folder.empty_file_of(0));
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(pid, nullptr, 0);
  for (const auto& entry : fs::directory_iterator(parent)) return entry.path();
  return {};
}

}  // namespace

TEST_CASE("ErrorFolder: the next launcher removes what a killed one left, and nothing of one that lives", "[launch]") {
  const test::TemporaryFolder parent;
  const fs::path left = left_by_a_killed_launcher(parent.path());
  REQUIRE(fs::exists(left / "rank-0"));
  const fs::path others = parent / "trainyard-launch", file = parent / "trainyard-launch-notes";
  fs::create_directory(others);
  std::ofstream(file) << "no folder";
  {
    const ErrorFolder living(parent.path());
    CHECK_FALSE(fs::exists(left));
    const ErrorFolder next(parent.path());
    CHECK(living.path() != next.path());
    CHECK(fs::exists(living.empty_file_of(1)));
    CHECK(fs::exists(next.path()));
  }
  CHECK(fs::exists(others));
  CHECK(fs::exists(file));
  CHECK(std::distance(fs::directory_iterator(parent.path()), fs::directory_iterator()) == 2);
}

}  // namespace trainyard::launch
