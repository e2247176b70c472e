// Ranks that do not fit together, or do not come: placed by hand, as pods are.
#include <catch2/catch.hpp>

#include <functional>
#include <memory>

#include "failure.h"

namespace trainyard::test {
namespace {

using Environment = std::map<std::string, std::string>;

struct BadWorld {
  const char* situation;
  std::function<void(Environment&)> place;  ///< of the second process; a rank 1 of 2 before
  Words settings;                           ///< of the second process, beside the first's
  Words says;                               ///< both
};

std::vector<BadWorld> bad_worlds() {
  return {
      {"WORLD_SIZE differs",
       [](Environment& place) { place["WORLD_SIZE"] = "3"; },
       {},
       {"WORLD_SIZE differs between ranks", "2 on rank", "3 on rank 1"}},
      {"configurations differ",
       [](Environment&) {},
       {"--training.batch_size", "7"},
       {"configuration differs between ranks: training.batch_size = ", "training.batch_size = 7 on rank 1"}},
      {"models differ",
       [](Environment&) {},
       {"--model.config", "", "--model.preset", "qwen3-tiny"},
       {"configuration differs"}},
  };
}

}  // namespace

TEST_CASE("bad world: ranks that contradict each other all end with code 2 and say how") {
  for (const BadWorld& row : bad_worlds()) {
    INFO("situation: " << row.situation);
    const SmallJob job;
    const int port = free_port();
    Environment place = rank_environment(1, 2, port);
    row.place(place);
    Process first({trainyard(job.train(3)), rank_environment(0, 2, port), std::chrono::seconds(60)});
    Process second({trainyard(job.train(3, row.settings)), place, std::chrono::seconds(60)});
    check_failure(second.wait(), 2, row.says);
    check_failure(first.wait(), 2, row.says);
    CHECK(saved_in(job.checkpoints()).empty());
  }
}

TEST_CASE("bad world: two ranks with one number end with code 2, as does the one with a number of its own") {
  const SmallJob job;
  const int port = free_port();
  std::vector<std::unique_ptr<Process>> ranks;
  for (const int rank : {0, 1, 1})
    ranks.push_back(std::make_unique<Process>(
        Command{trainyard(job.train(3)), rank_environment(rank, 3, port), std::chrono::seconds(60)}));
  for (const auto& rank : ranks) check_failure(rank->wait(), 2, {"two ranks have the number 1", "process"});
  CHECK(saved_in(job.checkpoints()).empty());
}

TEST_CASE("bad world: a rank that does not come is named by all others, with code 138") {
  const SmallJob job;
  const int port = free_port();
  const Words words = trainyard(job.train(3, {"--rendezvous.timeout", "4s"}));
  Process first({words, rank_environment(0, 3, port), std::chrono::seconds(60)});
  Process third({words, rank_environment(2, 3, port), std::chrono::seconds(60)});
  check_failure(first.wait(), 138, {"rank 1 did not come within 4 s", "rendezvous.timeout"});
  check_failure(third.wait(), 138, {"rank 1 did not come within 4 s"});
  CHECK(saved_in(job.checkpoints()).empty());
}

TEST_CASE("bad world: a master that nobody is ends with code 138, named") {
  const SmallJob job;
  const Words words = trainyard(job.train(3, {"--rendezvous.timeout", "1s"}));
  Environment place = rank_environment(1, 2, free_port());
  const std::string port = place["MASTER_PORT"];
  check_failure(run({words, place, std::chrono::seconds(60)}), 138,
                {"the master 127.0.0.1:" + port, "not reached within 1 s", "refused", "rendezvous.timeout"});
  place["MASTER_ADDR"] = "nobody.invalid";
  check_failure(run({words, place, std::chrono::seconds(60)}), 138,
                {"the master nobody.invalid:" + port, "its name does not resolve"});
}

TEST_CASE("bad world: a port that another program holds ends with code 2, named") {
  const SmallJob job;
  const Listener other;
  check_failure(run({trainyard(job.train(3)), rank_environment(0, 2, other.port()), std::chrono::seconds(60)}), 2,
                {"port " + std::to_string(other.port()), "in use", "MASTER_PORT"});
}

TEST_CASE("bad world: an environment that contradicts itself ends with code 2 and shows both") {
  struct Row {
    Environment change;
    Words says;
  };
  const std::vector<Row> rows{
      {{{"RANK", "2"}}, {"RANK=2", "WORLD_SIZE=2"}},
      {{{"RANK", "one"}}, {"RANK is 'one'", "whole number"}},
      {{{"MASTER_PORT", "99999"}}, {"MASTER_PORT is '99999'", "65535"}},
      {{{"MASTER_ADDR", ""}}, {"MASTER_ADDR is not set"}},
      {{{"NCCL_SOCKET_IFNAME", "^docker,lo,veth,eth,en,vm"}}, {"NCCL_SOCKET_IFNAME", "lo"}},
  };
  for (const Row& row : rows) {
    const SmallJob job;
    Environment place = rank_environment(1, 2, free_port());
    for (const auto& [name, value] : row.change) place[name] = value;
    check_failure(run({trainyard(job.train(3)), place, std::chrono::seconds(60)}), 2, row.says);
  }
}

TEST_CASE("bad world: processes cannot talk through a backend of threads") {
  const SmallJob job;
  check_failure(run({trainyard(job.train(3, {"--comm.backend", "in_process"})), rank_environment(0, 2, free_port()),
                     std::chrono::seconds(60)}),
                2, {"comm.backend is in_process", "2 processes"});
}

}  // namespace trainyard::test
