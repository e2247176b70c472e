#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <atomic>
#include <csignal>
#include <future>

#include "base/error.h"
#include "rendezvous/join.h"
#include "rendezvous/membership.h"
#include "rendezvous/sockets.h"
#include "rendezvous/stop.h"
#include "rendezvous/store_client.h"
#include "support/support.h"

namespace trainyard::rendezvous {
namespace {

using namespace std::chrono_literals;

constexpr Heartbeat::Settings kFastBeats{.interval = 20ms, .silent_after = 60s};

Place place_of_rank(int rank, int world, uint16_t port) {
  Place place;
  place.kind = Place::Kind::Rank;
  place.rank = rank;
  place.world = world;
  place.local_rank = rank;
  place.local_world = world;
  place.master = Endpoint{"127.0.0.1", port};
  return place;
}

JoinSettings join_settings(std::chrono::milliseconds timeout = 30s) {
  JoinSettings settings;
  settings.timeout = timeout;
  settings.refusal_grace = 0ms;
  settings.token = "secret";
  settings.config = "hash";
  settings.config_text = "train.yaml";
  settings.heartbeat = kFastBeats;
  return settings;
}

/// What a rank saw: "joined" and what follows, or its exit code and error.
std::string attempt(const std::function<std::string()>& act) {
  try {
    return act();
  } catch (const std::exception& error) {
    return fmt::format("{}: {}", static_cast<int>(exit_code_of(error)), error.what());
  }
}

std::string join_and_leave(const Place& place, const JoinSettings& settings) {
  return attempt([&] {
    Membership membership = join(place, settings);
    std::string seen = "joined:";
    for (const Member& member : membership.members()) seen += fmt::format(" {}", member.rank);
    membership.leave(10s);
    return seen;
  });
}

/// Every rank's result, the ranks as threads.
std::vector<std::string> join_all(const std::vector<std::pair<Place, JoinSettings>>& ranks) {
  std::vector<std::future<std::string>> running;
  for (const auto& [place, settings] : ranks) {
    running.push_back(std::async(std::launch::async,
                                 [&, place = place, settings = settings] { return join_and_leave(place, settings); }));
  }
  std::vector<std::string> results;
  for (auto& one : running) results.push_back(one.get());
  return results;
}

}  // namespace

TEST_CASE("join: all ranks meet and know one another, at any world size", "[rendezvous]") {
  const int world = GENERATE(1, 2, 3, 8);
  const uint16_t port = test::free_port();
  std::vector<std::pair<Place, JoinSettings>> ranks;
  for (int rank = world - 1; rank >= 0; --rank) ranks.emplace_back(place_of_rank(rank, world, port), join_settings());
  std::string expected = "joined:";
  for (int rank = 0; rank < world; ++rank) expected += fmt::format(" {}", rank);
  CHECK(join_all(ranks) == std::vector<std::string>(world, expected));
}

TEST_CASE("join: without a master rank 0's address goes by the way that is given", "[rendezvous]") {
  std::promise<std::string> told;
  auto shared = told.get_future().share();
  std::vector<std::pair<Place, JoinSettings>> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    Place place = place_of_rank(rank, 2, 0);
    place.master.reset();
    JoinSettings settings = join_settings();
    settings.share_from_rank_0 = [&told, shared, rank](const std::string& text) {
      if (rank == 0) told.set_value(text);
      return shared.get();
    };
    ranks.emplace_back(place, settings);
  }
  CHECK(join_all(ranks) == std::vector<std::string>(2, "joined: 0 1"));
}

TEST_CASE("join: rank 0 takes over the port that its launcher holds for it", "[rendezvous]") {
  UniqueFd listener = listen_on("127.0.0.1", 0);
  const uint16_t port = local_address(listener.get()).port();
  JoinSettings of_zero = join_settings();
  of_zero.environment["TRAINYARD_STORE_LISTENER"] = fmt::format("{}", listener.release());
  CHECK(join_all({{place_of_rank(0, 2, port), of_zero}, {place_of_rank(1, 2, port), join_settings()}}) ==
        std::vector<std::string>(2, "joined: 0 1"));
  // A number that is no listening socket of ours, as another program's variable may be, is left alone.
  const UniqueFd other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  CHECK_FALSE(adopt_listener(other.get()).valid());
  CHECK_FALSE(adopt_listener(-1).valid());
}

TEST_CASE("join: ranks that do not come are named after the time-out, on every rank alike", "[rendezvous]") {
  const uint16_t port = test::free_port();
  const auto results =
      join_all({{place_of_rank(0, 4, port), join_settings(400ms)}, {place_of_rank(1, 4, port), join_settings(10s)}});
  for (const std::string& result : results)
    CHECK(result == "138: ranks 2, 3 did not come within 400 ms; see their logs, or raise rendezvous.timeout");
}

TEST_CASE("join: two ranks with one number are an input error on all, naming both", "[rendezvous]") {
  const uint16_t port = test::free_port();
  const auto results = join_all({{place_of_rank(0, 3, port), join_settings()},
                                 {place_of_rank(1, 3, port), join_settings()},
                                 {place_of_rank(1, 3, port), join_settings()}});
  for (const std::string& result : results) {
    CHECK_THAT(result, Catch::StartsWith("2: two ranks have the number 1: rank 1 (") &&
                           Catch::Contains("each needs a RANK of its own"));
  }
}

TEST_CASE("join: a second rank 0 on the same port is an input error that names the port", "[rendezvous]") {
  const uint16_t port = test::free_port();
  const UniqueFd other = listen_on("127.0.0.1", port);
  CHECK_THAT(join_and_leave(place_of_rank(0, 2, port), join_settings()),
             Catch::StartsWith(fmt::format("2: cannot listen on port {}", port)));
}

TEST_CASE("join: world sizes that differ are an input error showing both", "[rendezvous]") {
  const uint16_t port = test::free_port();
  const auto results =
      join_all({{place_of_rank(0, 4, port), join_settings()}, {place_of_rank(1, 3, port), join_settings()}});
  for (const std::string& result : results) {
    CHECK_THAT(result, Catch::StartsWith("2: WORLD_SIZE differs between ranks: ") && Catch::Contains("4 on rank 0 (") &&
                           Catch::Contains("3 on rank 1 ("));
  }
}

TEST_CASE("join: configurations that differ are an input error naming the ranks", "[rendezvous]") {
  const uint16_t port = test::free_port();
  JoinSettings other = join_settings();
  other.config = "other hash";
  other.config_text = "other.yaml\nsteps = 3";
  const auto results = join_all({{place_of_rank(0, 2, port), join_settings()}, {place_of_rank(1, 2, port), other}});
  for (const std::string& result : results) {
    CHECK_THAT(result, Catch::StartsWith("2: the configuration differs between ranks: ") &&
                           Catch::Contains("train.yaml on rank 0 (") &&
                           Catch::Contains("other.yaml, steps = 3 on rank 1 ("));
  }
}

TEST_CASE("join: of configurations that differ only the settings that do are named, on one line", "[rendezvous]") {
  const uint16_t port = test::free_port();
  JoinSettings one = join_settings(), other = join_settings();
  one.config_text = "seed = 1\nsteps = 2\nlr = 1\n";
  other.config = "other hash";
  other.config_text = "seed = 1\nsteps = 3\nlr = 1\n";
  for (const std::string& result : join_all({{place_of_rank(0, 2, port), one}, {place_of_rank(1, 2, port), other}})) {
    CHECK_THAT(result, Catch::Contains(": steps = 2 on rank 0 (") || Catch::Contains("but steps = 2 on rank 0 ("));
    CHECK_THAT(result, Catch::Contains("steps = 3 on rank 1 (") && !Catch::Contains("seed") && !Catch::Contains("\n"));
  }
}

TEST_CASE("join: a world's roster holds no settings, of which hundreds of ranks would fill the store", "[rendezvous]") {
  const uint16_t port = test::free_port();
  JoinSettings settings = join_settings();
  settings.config_text = std::string(kMaxValueBytes / 2, 'a');
  for (const std::string& result : join_all({{place_of_rank(0, 3, port), settings},
                                             {place_of_rank(1, 3, port), settings},
                                             {place_of_rank(2, 3, port), settings}}))
    CHECK(result == "joined: 0 1 2");
}

TEST_CASE("join: a rule that admits no interface fails at once", "[rendezvous]") {
  JoinSettings settings = join_settings(600s);
  settings.environment = {{"NCCL_SOCKET_IFNAME", "=none0"}};
  CHECK_THAT(join_and_leave(place_of_rank(1, 2, 1), settings),
             Catch::StartsWith("2: NCCL_SOCKET_IFNAME==none0 admits none"));
}

TEST_CASE("join: ends where asked to stop, while others are missing", "[rendezvous]") {
  std::atomic<bool> stop = false;
  JoinSettings settings = join_settings(600s);
  settings.interrupted = [&] { return stop.exchange(true); };
  CHECK_THAT(join_and_leave(place_of_rank(0, 2, test::free_port()), settings), Catch::StartsWith("143: asked to stop"));
}

TEST_CASE("join: a number whose process has died before all met is free again, and afterwards it is not",
          "[rendezvous]") {
  ServerSettings server_settings;
  server_settings.host = "127.0.0.1";
  StoreServer server(std::move(server_settings));
  ClientSettings client;
  client.master = {"127.0.0.1", server.port()};
  const auto meet_as = [&](int rank, const std::string& life, bool interrupted) {
    return attempt([&] {
      StoreClient store(client);
      const Member self{rank, 2, "host-" + life, 7, "127.0.0.1", "hash", "train.yaml", life};
      return fmt::format("{} members", meet(store, self, {30s, 30s}, [&] { return interrupted; }).size());
    });
  };
  StoreClient watcher(client);
  const auto await_end = [&](int rank) {
    for (int looks = 0; watcher.get(member_key(rank)) && looks < 100000; ++looks) std::this_thread::yield();
  };
  CHECK_THAT(meet_as(1, "a", true), Catch::StartsWith("143"));
  await_end(1);
  auto first = std::async(std::launch::async, [&] { return meet_as(1, "b", false); });
  CHECK(meet_as(0, "c", false) == "2 members");
  CHECK(first.get() == "2 members");
  await_end(1);
  CHECK(meet_as(1, "d", false) ==
        "138: rank 1 (host-b, process 7) joined this job before and is gone; the whole job must start anew");
}

TEST_CASE("BeatCount: who has not beaten for a while is silent, who has left is not", "[rendezvous]") {
  const BeatCount::TimePoint start{};
  BeatCount count({"a", "b", "c", "d"}, start);
  count.observe(0, "1", true, start + 10s);
  count.observe(1, "1", true, start + 1s);
  count.observe(2, "1", false, start + 10s);
  count.observe(3, "left", false, start + 1s);
  const auto silent = count.silent(15s, start + 16s);
  REQUIRE(silent.size() == 2);
  CHECK(silent[0] == SilentRank{1, "b", 15s, false});
  CHECK(silent[1] == SilentRank{2, "c", 6s, true});
  CHECK(describe(silent) == "rank 1 (b) silent for 15 s, rank 2 (c) gone");
  count.observe(1, "1", true, start + 17s);
  CHECK(count.silent(15s, start + 17s).size() == 2);
  count.observe(1, "2", true, start + 17s);
  CHECK(count.silent(15s, start + 17s).size() == 1);
}

TEST_CASE("Membership: a rank whose connection ends without a farewell is named by any other", "[rendezvous]") {
  const uint16_t port = test::free_port();
  auto zero = std::async(std::launch::async, [&] { return join(place_of_rank(0, 3, port), join_settings()); });
  auto one = std::async(std::launch::async, [&] { return join(place_of_rank(1, 3, port), join_settings()); });
  auto two = std::make_unique<Membership>(join(place_of_rank(2, 3, port), join_settings()));
  Membership master = zero.get(), other = one.get();
  CHECK(other.silent_ranks().empty());
  two.reset();
  std::vector<SilentRank> silent;
  for (int looks = 0; silent.empty() && looks < 2000; ++looks) {
    silent = other.silent_ranks();
    std::this_thread::sleep_for(5ms);
  }
  REQUIRE(silent.size() == 1);
  CHECK(silent[0].rank == 2);
  CHECK(silent[0].is_gone);
  CHECK_THAT(other.describe_silent(), Catch::StartsWith("rank 2 (") && Catch::EndsWith("gone"));
}

TEST_CASE("Membership: a rank that is connected but does not beat is named as silent", "[rendezvous]") {
  const uint16_t port = test::free_port();
  JoinSettings asleep = join_settings();
  asleep.heartbeat.interval = 600s;
  JoinSettings watchful = join_settings();
  watchful.heartbeat.silent_after = 200ms;
  auto zero = std::async(std::launch::async, [&] { return join(place_of_rank(0, 2, port), watchful); });
  Membership silent_one = join(place_of_rank(1, 2, port), asleep);
  Membership master = zero.get();
  std::vector<SilentRank> silent;
  for (int looks = 0; silent.empty() && looks < 2000; ++looks) {
    silent = silent_one.silent_ranks();
    std::this_thread::sleep_for(5ms);
  }
  REQUIRE(silent.size() == 1);
  CHECK(silent[0].rank == 1);
  CHECK_FALSE(silent[0].is_gone);
  CHECK(silent[0].silent_for >= 200ms);
}

TEST_CASE("Membership: the master's loss is named, and ends in good time", "[rendezvous]") {
  const uint16_t port = test::free_port();
  auto zero = std::make_unique<std::future<Membership>>(
      std::async(std::launch::async, [&] { return join(place_of_rank(0, 2, port), join_settings()); }));
  Membership other = join(place_of_rank(1, 2, port), join_settings());
  auto master = std::make_unique<Membership>(zero->get());
  master.reset();
  CHECK_THROWS_AS(other.store().wait("never", 60s), PeerError);
  CHECK_THAT(other.describe_silent(), Catch::StartsWith(fmt::format("lost the master 127.0.0.1:{}", port)));
}

TEST_CASE("Membership: rank 0 ends with an error when the others have read it too, or after its patience",
          "[rendezvous]") {
  const uint16_t port = test::free_port();
  auto zero = std::async(std::launch::async, [&] { return join(place_of_rank(0, 2, port), join_settings()); });
  auto other = std::make_unique<Membership>(join(place_of_rank(1, 2, port), join_settings()));
  const Membership master = zero.get();
  const auto begin = std::chrono::steady_clock::now();
  master.let_others_hear(50ms);
  CHECK(std::chrono::steady_clock::now() - begin >= 50ms);
  other->let_others_hear(60s);  // waits for nobody

  std::atomic<bool> has_read = false;
  auto slow = std::async(std::launch::async, [&] {
    for (int call = 0; call < 1000; ++call) static_cast<void>(other->store().get("verdict"));
    has_read = other->store().get("verdict") == "no";
    other.reset();
  });
  master.store().set("verdict", "no");
  master.let_others_hear(60s);
  CHECK(has_read);
  CHECK(std::chrono::steady_clock::now() - begin < 60s);
}

TEST_CASE("Membership: what a rank ends with of its own fault is known before it goes, and ends waits for it",
          "[rendezvous]") {
  const uint16_t port = test::free_port();
  auto zero = std::async(std::launch::async, [&] { return join(place_of_rank(0, 2, port), join_settings()); });
  Membership at_fault = join(place_of_rank(1, 2, port), join_settings());
  Membership master = zero.get();
  CHECK_FALSE(master.last_words());
  CHECK(master.silent_ranks().empty());
  at_fault.leave_last_words("no such file: \xff", ExitCode::Defect);
  master.leave_last_words("rank 1 does not answer");  // the first words stand
  const auto words = master.last_words();
  REQUIRE(words);
  CHECK(words->rank == 1);
  CHECK(words->code == ExitCode::Defect);
  CHECK(words->text == "no such file: \xef\xbf\xbd");
  CHECK_THAT(master.describe_silent(), Catch::StartsWith("rank 1 (") && Catch::EndsWith("gone"));
  const std::vector<std::string> keys{"what rank 1 would have said"};
  CHECK_THROWS_WITH(wait_for_ranks(master.store(), keys, 600s), Catch::StartsWith("rank 1 ("));
}

TEST_CASE("SignalWatch: notes SIGTERM and puts the former handler back", "[rendezvous]") {
  struct sigaction before {
  }, after{};
  ::sigaction(SIGTERM, nullptr, &before);
  {
    const SignalWatch watch;
    CHECK_FALSE(watch.is_requested());
    std::raise(SIGTERM);
    CHECK(watch.received() == SIGTERM);
    CHECK_THROWS_AS(SignalWatch(), std::logic_error);
  }
  ::sigaction(SIGTERM, nullptr, &after);
  CHECK(after.sa_handler == before.sa_handler);
  const SignalWatch again;
  CHECK(again.received() == 0);
}

TEST_CASE("SignalWatch: SIGTERM does not end a process that is about to tell of an error", "[rendezvous]") {
  struct sigaction before {};
  ::sigaction(SIGTERM, nullptr, &before);
  try {
    const SignalWatch watch;
    throw InputError("why");
  } catch (const InputError&) {
    std::raise(SIGTERM);  // ends this process where nobody handles it
  }
  ::sigaction(SIGTERM, &before, nullptr);
}

}  // namespace trainyard::rendezvous
