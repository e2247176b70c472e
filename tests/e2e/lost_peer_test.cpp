// A rank dies or falls silent in the middle of training: the others end by themselves and say who it was.
#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <thread>

#include "failure.h"

namespace trainyard::test {
namespace {

using std::chrono::seconds;

/// Steps without an end, and no checkpoint to wait for.
Words endless(const SmallJob& job, const Words& more = {}) {
  return job.train(1'000'000, Words{"--checkpoint.enabled", "false"} + more);
}

/// Waits until `text` stands so many times in its output.
bool says_times(const Process& process, const std::string& text, int times) {
  const auto count = [&](const std::string& all) {
    int found = 0;
    for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++found;
    return found;
  };
  const auto deadline = std::chrono::steady_clock::now() + seconds(60);
  while (count(process.out()) + count(process.err()) < times) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
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

/// What a rank left of its last collectives.
nlohmann::json flight_of(const SmallJob& job, int rank) {
  return nlohmann::json::parse(text_of(job.folder() / fmt::format("flight.rank-{}.json", rank)));
}

/// Collectives that began and did not end, oldest first.
std::vector<nlohmann::json> unfinished_in(const nlohmann::json& flight) {
  std::vector<nlohmann::json> unfinished;
  for (const auto& entry : flight.at("collectives"))
    if (entry.at("ended").is_null() && !entry.at("begun").is_null()) unfinished.push_back(entry);
  return unfinished;
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

TEST_CASE("lost peer: a rank that stands still is named after comm.timeout, with 138, in the flight records too") {
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
    const auto flight = flight_of(job, rank);
    CHECK(flight.at("rank") == rank);
    CHECK(flight.at("world") == 3);
    const auto reason = flight.at("reason").get<std::string>();
    CHECK_THAT(reason, Catch::Contains(fmt::format("{} (", stopped)));
    const auto stuck = unfinished_in(flight);
    REQUIRE(!stuck.empty());
    CHECK_THAT(reason, Catch::Contains(fmt::format("{} of {}", stuck.front().at("collective").get<std::string>(),
                                                   stuck.front().at("label").get<std::string>())));
  }
}

TEST_CASE("lost peer: a rank tells what it is doing on SIGUSR1 and goes on, and on a signal that ends it") {
  const SmallJob job;
  const Process training({on_ranks(2, endless(job)), {}, seconds(60)});
  REQUIRE(training.says("step: 3 "));
  const auto ranks = training.children();
  REQUIRE(ranks.size() == 2);
  training.signal(SIGUSR1);  // the launcher passes it on
  REQUIRE(training.says("rank 1: SIGUSR1: collectives in "));
  REQUIRE(training.says("rank 0: SIGUSR1: collectives in "));
  const auto flight = flight_of(job, 1);
  CHECK(flight.at("reason") == "SIGUSR1");
  CHECK(flight.at("process") == ranks[1]);
  CHECK(flight.at("collectives").size() > 10);
  const std::string stacks = text_of(job.folder() / "stacks.rank-1.txt");
  CAPTURE(stacks);
  const auto threads =
      std::ranges::count_if(lines_of(stacks), [](const auto& line) { return line.starts_with("thread "); });
  CHECK(threads >= 3);  // main, the communicator's, beat
  const auto step = job.metrics().size();
  REQUIRE(training.says(fmt::format("step: {} ", step + 3)));

  ::kill(ranks[1], SIGSEGV);
  REQUIRE(training.says("rank 1: SIGSEGV: collectives in "));
  REQUIRE(training.says("rank 1 failed first, killed by signal 11"));
  CHECK(flight_of(job, 1).at("reason") == "SIGSEGV");
  CHECK_THAT(text_of(job.folder() / "stacks.rank-1.txt"), Catch::StartsWith("thread "));
}

TEST_CASE(
    "lost peer: launch --max-restarts starts the ranks again from the last checkpoint, until the budget is spent") {
  const SmallJob job;
  const Words arguments = job.train(1'000'000, {"--checkpoint.interval", "5"});
  Process launch(
      {trainyard(Words{"launch", "--nproc-per-node", "3", "--max-restarts", "2"} + arguments), {}, seconds(120)});
  REQUIRE(launch.says("step: 6 "));
  for (int start = 0; start < 3; ++start) {
    CAPTURE(start, launch.out(), launch.err());
    if (start > 0) {
      REQUIRE(launch.says(fmt::format("restart {} of 2", start)));
      REQUIRE(says_times(launch, "Loaded checkpoint from step", start));
    }
    const auto ranks = launch.children();
    REQUIRE(ranks.size() == 3);
    ::kill(ranks[static_cast<size_t>(start)], SIGKILL);
  }
  const Ended ended = launch.wait();
  INFO(ended.all());
  CHECK(ended.code == 137);
  CHECK_THAT(ended.err, Catch::Contains("rank 0 failed first, killed by signal 9") &&
                            Catch::Contains("rank 1 failed first, killed by signal 9") &&
                            Catch::Contains("rank 2 failed first, killed by signal 9"));
  CHECK_THAT(ended.err, !Catch::Contains("restart 3"));
}

TEST_CASE("lost peer: nodes whose launchers may restart form their world again, at one number of restarts") {
  const SmallJob job;
  const int port = free_port();
  const auto node = [&](int number) {
    return std::make_unique<Process>(Command{
        trainyard(Words{"launch", "--nnodes", "2", "--node-rank", std::to_string(number), "--master-addr", "127.0.0.1",
                        "--master-port", std::to_string(port), "--nproc-per-node", "2", "--max-restarts", "3"} +
                  job.train(1'000'000, {"--checkpoint.interval", "5"})),
        {}});
  };
  const auto first = node(0), second = node(1);
  REQUIRE(first->says("step: 6 "));
  const auto ranks = second->children();
  REQUIRE(ranks.size() == 2);
  const auto done = job.metrics().size();
  ::kill(ranks[1], SIGKILL);
  REQUIRE(second->says("restart 1 of 3"));
  REQUIRE(first->says("restart 1 of 3"));
  REQUIRE(says_times(*first, "Loaded checkpoint from step", 1));
  REQUIRE(first->says(fmt::format("step: {} ", done + 30)));
}

TEST_CASE("lost peer: what a restart would repeat is not started again") {
  const SmallJob job;
  const Ended ended = run({trainyard(Words{"launch", "--nproc-per-node", "2", "--max-restarts", "3"} +
                                     job.train(3, {"--optimizer.lr", "1e30"})),
                           {},
                           seconds(60)});
  INFO(ended.all());
  CHECK(ended.code == 3);
  CHECK_THAT(ended.err, !Catch::Contains("restart 1"));
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

TEST_CASE("lost peer: of a rank that stands still in a mesh, who waits for it tells the place, and launch the rank") {
  const SmallJob job;
  Process launch(
      {on_ranks(4, endless(job) + Words{"--parallel.tensor", "2", "--comm.timeout", "4s"}), {}, seconds(90)});
  REQUIRE(launch.says("step: 3 "));
  const auto ranks = launch.children();
  REQUIRE(ranks.size() == 4);
  ::kill(ranks[2], SIGSTOP);
  const Ended ended = launch.wait();
  INFO(ended.all());
  CHECK(ended.code == 138);
  CHECK_THAT(ended.err, Catch::Contains("; shard 1, tensor 0)"));
  CHECK_THAT(ended.err, Catch::Contains("it waited in the end for rank 2, which did not answer and had to be killed"));
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
