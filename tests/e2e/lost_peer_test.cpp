// A rank dies or falls silent in the middle of training: the others end by themselves and say who it was.
#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "failure.h"

namespace trainyard::test {
namespace {

using std::chrono::seconds;

/// Steps without an end, and no checkpoint to wait for.
Words endless(const SmallJob& job, const Words& more = {}) {
  return job.train(1'000'000, Words{"--checkpoint.enabled", "false"} + more);
}

using Ranks = std::vector<std::unique_ptr<Process>>;

/// Three ranks that nobody launched, under way.
Ranks three_ranks(const SmallJob& job, const Words& more = {}) {
  Ranks ranks;
  const int port = free_port();
  for (int rank = 0; rank < 3; ++rank)
    ranks.push_back(std::make_unique<Process>(
        Command{trainyard(endless(job, more)), rank_environment(rank, 3, port), seconds(60)}));
  REQUIRE(ranks[0]->says("step: 3 "));
  return ranks;
}

/// The last line that a rank wrote to stderr, which a warning of the rendezvous may precede.
std::string last_error_of(const Ended& ended) {
  const auto errors = errors_of(ended);
  return errors.empty() ? "" : errors.back();
}

std::string line_with(const Ended& ended, const std::string& beginning) {
  for (const std::string& line : lines_of(ended.err))
    if (line.starts_with(beginning)) return line;
  return "";
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

TEST_CASE("lost peer: of three ranks without a launcher the two that are left end with 138 and name the killed one") {
  const int killed = GENERATE(0, 1, 2);
  const bool shared_memory = GENERATE(true, false);
  CAPTURE(killed, shared_memory);
  const SmallJob job;
  const Ranks ranks = three_ranks(job, {"--comm.shared_memory", shared_memory ? "true" : "false"});
  ranks[static_cast<size_t>(killed)]->signal(SIGKILL);
  for (int rank = 0; rank < 3; ++rank) {
    const Ended ended = ranks[static_cast<size_t>(rank)]->wait();
    if (rank == killed) continue;
    check_failure(ended, 138, {fmt::format("rank {}: ", rank), fmt::format("lost rank {} (", killed)});
  }
}

TEST_CASE("lost peer: a rank that stands still is named after comm.timeout, with 138") {
  const int stopped = GENERATE(1, 0);
  CAPTURE(stopped);
  const SmallJob job;
  const Ranks ranks = three_ranks(job, {"--comm.timeout", "3s"});
  ranks[static_cast<size_t>(stopped)]->signal(SIGSTOP);
  for (int rank = 0; rank < 3; ++rank) {
    if (rank == stopped) continue;
    const Ended ended = ranks[static_cast<size_t>(rank)]->wait();
    INFO(ended.all());
    CHECK(ended.code == 138);
    CHECK_THAT(last_error_of(ended),
               Catch::Contains(fmt::format("{} (", stopped)) || Catch::Contains("lost the master"));
  }
}

TEST_CASE("lost peer: launch ends all, and says which rank failed first and why") {
  const SmallJob job;
  const auto log = job.folder() / "termination-log";
  write_text(log, "of an earlier container");
  Process launch({on_ranks(3, endless(job)), {{"TRAINYARD_TERMINATION_LOG", log.string()}}, seconds(60)});
  REQUIRE(launch.says("step: 3 "));
  const auto ranks = launch.children();
  REQUIRE(ranks.size() == 3);
  ::kill(ranks[1], SIGKILL);
  const Ended ended = launch.wait();
  INFO(ended.all());
  CHECK(ended.code == 137);
  const std::string line = "rank 1 failed first, killed by signal 9 (Killed, out of memory?)";
  CHECK_THAT(line_with(ended, "trainyard launch: "), Catch::Contains(line));
  CHECK_THAT(text_of(log), Catch::StartsWith(line) && Catch::EndsWith("\n"));
  CHECK(lines_of(text_of(log)).size() == 1);
  for (const pid_t rank : ranks) CHECK(::kill(rank, 0) != 0);  // none is left, not even as a zombie
}

TEST_CASE("lost peer: launch kills a rank that stands still while the others fail") {
  const SmallJob job;
  Process launch({on_ranks(3, endless(job)), {}, seconds(60)});
  REQUIRE(launch.says("step: 3 "));
  const auto ranks = launch.children();
  REQUIRE(ranks.size() == 3);
  ::kill(ranks[2], SIGSTOP);
  const auto begin = std::chrono::steady_clock::now();
  ::kill(ranks[0], SIGKILL);
  const Ended ended = launch.wait();
  INFO(ended.all());
  CHECK(std::chrono::steady_clock::now() - begin < seconds(20));  // 5 s on a machine that does nothing else
  CHECK(ended.code == 137);
  CHECK_THAT(ended.err, Catch::Contains("rank 0 failed first, killed by signal 9"));
  CHECK_THAT(ended.err, Catch::Contains("rank 2 did not end in time and is killed"));
}

TEST_CASE("lost peer: launch ends with the code of the rank that failed first, and with its words") {
  const SmallJob job;
  const auto log = job.folder() / "termination-log";
  write_text(log, "");
  const Ended ended = run({on_ranks(2, job.train(3, {"--optimizer.lr", "1e30"})),
                           {{"TRAINYARD_TERMINATION_LOG", log.string()}},
                           seconds(60)});
  INFO(ended.all());
  CHECK(ended.code == 3);
  CHECK_THAT(line_with(ended, "trainyard launch: "),
             Catch::Contains("failed first, exit code 3: step 2: loss ") && Catch::Contains("first bad tensor"));
  CHECK_THAT(text_of(log), Catch::Contains("failed first, exit code 3: step 2: loss "));
  CHECK(lines_of(text_of(log)).size() == 1);
}

TEST_CASE("lost peer: one process alone leaves its last error in the termination log") {
  const SmallJob job;
  const auto log = job.folder() / "termination-log";
  write_text(log, "");
  const Ended ended = run(
      {trainyard(job.train(3, {"--training.stpes", "3"})), {{"TRAINYARD_TERMINATION_LOG", log.string()}}, seconds(60)});
  check_failure(ended, 2, {"--training.stpes"});
  CHECK(text_of(log) == errors_of(ended)[0].substr(std::string("trainyard: error: ").size()) + "\n");
}

}  // namespace trainyard::test
