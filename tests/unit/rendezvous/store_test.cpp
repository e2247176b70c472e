#include <fmt/format.h>
#include <poll.h>
#include <catch2/catch.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <thread>

#include "base/error.h"
#include "rendezvous/memory_store.h"
#include "rendezvous/sockets.h"
#include "rendezvous/store_client.h"
#include "rendezvous/store_server.h"
#include "support/support.h"

namespace trainyard::rendezvous {
namespace {

using namespace std::chrono_literals;

ServerSettings server_settings(Credentials credentials = {}, std::string host = "127.0.0.1") {
  ServerSettings settings;
  settings.host = std::move(host);
  settings.credentials = std::move(credentials);
  return settings;
}

ClientSettings client_settings(uint16_t port, Credentials credentials = {}, std::string host = "127.0.0.1") {
  ClientSettings settings;
  settings.master = {std::move(host), port};
  settings.credentials = std::move(credentials);
  settings.timeout = 30s;
  settings.refusal_grace = 0s;
  return settings;
}

/// A plain connection, as a stranger makes it.
UniqueFd connect_plainly(uint16_t port) {
  const Resolved resolved = resolve({"127.0.0.1", port});
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(socket.get(), resolved.addresses.at(0).get(), resolved.addresses.at(0).length) == 0);
  return socket;
}

/// Everything the other side sends until it closes the connection.
std::string read_to_end(int socket) {
  std::string all;
  char bytes[4096];
  for (;;) {
    pollfd poll{.fd = socket, .events = POLLIN, .revents = 0};
    if (::poll(&poll, 1, 20000) <= 0) return all + "[still open]";
    const ssize_t count = ::recv(socket, bytes, sizeof bytes, 0);
    if (count <= 0) return all;
    all.append(bytes, static_cast<size_t>(count));
  }
}

std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

bool has_ipv6() {
  try {
    listen_on("::1", 0);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

TEST_CASE("Store: set, get, wait, add, compare-and-set and erase mean the same over TCP and in memory",
          "[rendezvous]") {
  StoreServer server(server_settings());
  std::unique_ptr<Store> owned;
  if (GENERATE(true, false))
    owned = std::make_unique<StoreClient>(client_settings(server.port()));
  else
    owned = std::make_unique<MemoryStore>();
  Store& store = *owned;
  const std::string bytes("\0\r\n\xff", 4);

  CHECK_FALSE(store.get("k").has_value());
  store.set("k", bytes);
  CHECK(store.get("k") == bytes);
  store.set("k", "");
  CHECK(store.get("k") == "");
  CHECK(store.erase("k"));
  CHECK_FALSE(store.erase("k"));
  CHECK(store.add("n", 3) == 3);
  CHECK(store.add("n", -5) == -2);
  CHECK(store.get("n") == "-2");
  CHECK(store.compare_and_set("c", "x", "y").empty());
  CHECK(store.compare_and_set("c", std::nullopt, "1") == "1");
  CHECK(store.compare_and_set("c", std::nullopt, "2") == "1");
  CHECK(store.compare_and_set("c", "1", "2") == "2");
  const std::vector<std::string> keys{"n", "c", "gone"};
  CHECK(store.try_wait(keys, 0ms).missing == std::vector<std::string>{"gone"});
  CHECK(store.try_wait(keys, 1ms).values.empty());
  CHECK(store.claim("gone", "back") == "back");
  CHECK(store.claim("gone", "again") == "back");
  CHECK(store.wait(keys, 1s) == std::vector<std::string>{"-2", "2", "back"});
  store.set("large", std::string(kMaxValueBytes, 'v'));
  CHECK(store.get("large") == std::string(kMaxValueBytes, 'v'));
  CHECK_THROWS_AS(store.set("large", std::string(kMaxValueBytes + 1, 'v')), std::invalid_argument);
  CHECK_THROWS_AS(store.set("", "v"), std::invalid_argument);
  CHECK_THROWS_AS(store.add("large", 1), std::invalid_argument);
  CHECK(store.get("n") == "-2");
}

TEST_CASE("StoreClient: a thread that waits does not hold up another of the same client", "[rendezvous]") {
  StoreServer server(server_settings());
  StoreClient client(client_settings(server.port()));
  std::vector<std::future<std::string>> waits;
  for (int i = 0; i < 8; ++i) {
    waits.push_back(std::async(std::launch::async, [&, i] { return client.wait(fmt::format("key {}", i), 60s); }));
  }
  for (int i = 7; i >= 0; --i) {
    client.set(fmt::format("key {}", i), fmt::format("{}", i));
    CHECK(waits[i].get() == fmt::format("{}", i));
  }
}

TEST_CASE("StoreClient: more keys than one request holds are waited for in pieces", "[rendezvous]") {
  StoreServer server(server_settings());
  StoreClient client(client_settings(server.port()));
  std::vector<std::string> keys;
  for (int i = 0; i < 2500; ++i) keys.push_back(fmt::format("{:01000}", i));
  CHECK(client.try_wait(keys, 1ms).missing == keys);
}

TEST_CASE("StoreClient: over IPv6, and over IPv4 to the same dual-stack port", "[rendezvous]") {
  if (!has_ipv6()) return test::skip("no IPv6 on this machine");
  StoreServer server(server_settings({}, "any"));
  StoreClient v6(client_settings(server.port(), {}, "::1")), v4(client_settings(server.port()));
  v6.set("k", "from IPv6");
  CHECK(v4.get("k") == "from IPv6");
  CHECK(v6.local_address().host() == "::1");
  CHECK(v4.local_address().host() == "127.0.0.1");
}

TEST_CASE("StoreClient: waits for a master that starts later", "[rendezvous]") {
  const uint16_t port = test::free_port();
  auto value = std::async(std::launch::async, [&] { return StoreClient(client_settings(port)).wait("k", 30s); });
  CHECK(value.wait_for(150ms) == std::future_status::timeout);  // it has been refused at least once
  ServerSettings settings = server_settings();
  settings.port = port;
  StoreServer server(std::move(settings));
  StoreClient(client_settings(port)).set("k", "v");
  CHECK(value.get() == "v");
}

TEST_CASE("StoreClient: gives up after its time-out, naming host, port and the last reason", "[rendezvous]") {
  const uint16_t port = test::free_port();
  ClientSettings settings = client_settings(port);
  settings.timeout = 200ms;
  CHECK_THROWS_AS(StoreClient(settings), PeerError);
  CHECK_THROWS_WITH(
      StoreClient(settings),
      Catch::Contains(fmt::format("the master 127.0.0.1:{} was not reached within 200 ms: Connection refused", port)));
  settings.master.host = "no-such-host.invalid";
  CHECK_THROWS_WITH(StoreClient(settings),
                    Catch::Contains("no-such-host.invalid") && Catch::Contains("does not resolve"));
}

TEST_CASE("StoreClient: stops waiting for the master when asked to", "[rendezvous]") {
  ClientSettings settings = client_settings(test::free_port());
  std::atomic<int> asked = 0;
  settings.interrupted = [&] { return ++asked > 2; };
  CHECK_THROWS_AS(StoreClient(settings), TerminatedError);
}

TEST_CASE("StoreClient: a wrong token or generation is an input error that says so", "[rendezvous]") {
  StoreServer server(server_settings({"secret", 4}));
  const auto connect = [&](const Credentials& credentials) {
    StoreClient client(client_settings(server.port(), credentials));
  };
  CHECK_THROWS_AS(connect({"guess", 4}), InputError);
  CHECK_THROWS_WITH(connect({"guess", 4}), Catch::Contains("refuses this rank: the job token is not this store's"));
  CHECK_THROWS_AS(connect({"secret", 3}), InputError);
  CHECK_THROWS_WITH(connect({"secret", 3}),
                    Catch::Contains("generation 3, but this store is generation 4: this rank is of an earlier life"));
  CHECK(error_of([&] { connect({"secret", 4}); }).empty());
}

TEST_CASE("StoreClient: a newer generation waits for its own master to replace the old one", "[rendezvous]") {
  auto old_master = std::make_unique<StoreServer>(server_settings({"secret", 1}));
  const uint16_t port = old_master->port();
  auto value = std::async(std::launch::async, [&] {
    return StoreClient(client_settings(port, {"secret", 2})).wait("k", 30s);
  });
  CHECK(value.wait_for(150ms) == std::future_status::timeout);
  old_master.reset();
  ServerSettings settings = server_settings({"secret", 2});
  settings.port = port;
  StoreServer new_master(std::move(settings));
  StoreClient(client_settings(port, {"secret", 2})).set("k", "v");
  CHECK(value.get() == "v");
}

TEST_CASE("StoreClient: what listens there and is no store is tried until the time-out", "[rendezvous]") {
  const UniqueFd listener = listen_on("127.0.0.1", 0);
  std::jthread impostor([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd poll{.fd = listener.get(), .events = POLLIN, .revents = 0};
      if (::poll(&poll, 1, 20) <= 0) continue;
      const UniqueFd client(::accept(listener.get(), nullptr, nullptr));
      const std::string text = "HTTP/1.1 400 Bad Request\r\n\r\n";
      static_cast<void>(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL));
    }
  });
  ClientSettings settings = client_settings(local_address(listener.get()).port());
  settings.timeout = 300ms;
  CHECK_THROWS_AS(StoreClient(settings), PeerError);
  CHECK_THROWS_WITH(StoreClient(settings), Catch::Contains("no rendezvous store"));
}

TEST_CASE("StoreClient: a lost master is named, in every thread that waits", "[rendezvous]") {
  auto server = std::make_unique<StoreServer>(server_settings());
  StoreClient client(client_settings(server->port()));
  const std::string master = fmt::format("lost the master 127.0.0.1:{}: it closed the connection", server->port());
  std::vector<std::future<std::string>> waits;
  for (int i = 0; i < 3; ++i) {
    waits.push_back(std::async(std::launch::async,
                               [&] { return error_of([&] { static_cast<void>(client.wait("never", 60s)); }); }));
  }
  client.set("k", "v");
  server.reset();
  for (auto& wait : waits) CHECK_THAT(wait.get(), Catch::StartsWith("lost the master"));
  CHECK_THROWS_AS(client.set("k", "v"), PeerError);
  CHECK_THROWS_WITH(client.get("k"), Catch::StartsWith("lost the master"));
}

TEST_CASE("StoreClient: a master that is connected but silent is lost after the reply time-out", "[rendezvous]") {
  // The store's end of the greeting is played by hand, then nothing more is said.
  const UniqueFd listener = listen_on("127.0.0.1", 0);
  const Credentials credentials;
  std::jthread silent([&](const std::stop_token& stop) {
    pollfd poll{.fd = listener.get(), .events = POLLIN, .revents = 0};
    ::poll(&poll, 1, 20000);
    const UniqueFd client(::accept(listener.get(), nullptr, nullptr));
    ServerSession session(credentials, fresh_nonce());
    char bytes[512];
    while (session.state() != ServerSession::State::Open) {
      const ssize_t count = ::recv(client.get(), bytes, sizeof bytes, 0);
      if (count <= 0) return;
      const std::string output = session.receive({bytes, static_cast<size_t>(count)}).output;
      static_cast<void>(::send(client.get(), output.data(), output.size(), MSG_NOSIGNAL));
    }
    while (!stop.stop_requested() && ::recv(client.get(), bytes, sizeof bytes, 0) > 0) {
    }
  });
  ClientSettings settings = client_settings(local_address(listener.get()).port());
  settings.reply_timeout = 100ms;
  StoreClient client(settings);
  auto other =
      std::async(std::launch::async, [&] { return error_of([&] { static_cast<void>(client.wait("never", 600s)); }); });
  CHECK_THROWS_WITH(client.get("k"), Catch::Contains("did not answer within 100 ms"));
  CHECK_THAT(other.get(), Catch::Contains("did not answer within 100 ms"));
}

TEST_CASE("StoreServer: strangers and garbage are dropped and change nothing", "[rendezvous]") {
  ServerSettings settings = server_settings({"secret", 0});
  settings.proof_timeout = 200ms;
  StoreServer server(std::move(settings));
  StoreClient client(client_settings(server.port(), {"secret", 0}));
  client.set("k", "v");

  const UniqueFd silent = connect_plainly(server.port());
  const UniqueFd http = connect_plainly(server.port()), bare = connect_plainly(server.port()),
                 half = connect_plainly(server.port());
  const std::string request = "GET / HTTP/1.1\r\n\r\n",
                    set = frame(encode(Request{1, Operation::Set, {"k"}, "stolen"}));
  REQUIRE(::send(http.get(), request.data(), request.size(), MSG_NOSIGNAL) > 0);
  REQUIRE(::send(bare.get(), set.data(), set.size(), MSG_NOSIGNAL) > 0);
  REQUIRE(::send(half.get(), "\x20\0", 2, MSG_NOSIGNAL) > 0);
  for (const UniqueFd* stranger : {&http, &bare, &silent, &half})
    CHECK_THAT(read_to_end(stranger->get()), !Catch::Contains("[still open]"));
  CHECK(client.get("k") == "v");
}

TEST_CASE("StoreServer: a flood of strangers does not shut a rank out", "[rendezvous]") {
  ServerSettings settings = server_settings();
  settings.max_strangers = 16;
  StoreServer server(std::move(settings));
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 100; ++i) strangers.push_back(connect_plainly(server.port()));
  StoreClient client(client_settings(server.port()));
  client.set("k", "v");
  CHECK(client.get("k") == "v");
}

TEST_CASE("StoreServer: a port in use is an input error that names it", "[rendezvous]") {
  StoreServer server(server_settings());
  const auto listen_too = [&] {
    ServerSettings settings = server_settings();
    settings.port = server.port();
    StoreServer(std::move(settings));
  };
  CHECK_THROWS_AS(listen_too(), InputError);
  CHECK_THROWS_WITH(listen_too(),
                    Catch::Contains(fmt::format("cannot listen on port {} for the rendezvous: Address already in use",
                                                server.port())));
}

TEST_CASE("StoreServer: erases what a client has claimed, once it is gone", "[rendezvous]") {
  StoreServer server(server_settings());
  StoreClient watcher(client_settings(server.port()));
  auto client = std::make_unique<StoreClient>(client_settings(server.port()));
  client->claim("alive", "1");
  CHECK(watcher.get("alive") == "1");
  client.reset();
  for (int looks = 0; watcher.get("alive") && looks < 100000; ++looks) std::this_thread::yield();
  CHECK_FALSE(watcher.get("alive").has_value());
}

TEST_CASE("StoreServer: a thousand clients set, add and wait for one another", "[rendezvous]") {
  constexpr int kClients = 1000, kThreads = 10;
  ServerSettings settings = server_settings({"secret", 1});
  StoreServer server(std::move(settings));
  std::vector<std::unique_ptr<StoreClient>> clients(kClients);
  const auto run_all = [&](const std::function<int(int)>& act) {
    std::vector<std::future<int>> sums;
    for (int thread = 0; thread < kThreads; ++thread) {
      sums.push_back(std::async(std::launch::async, [&, thread] {
        int sum = 0;
        for (int i = thread; i < kClients; i += kThreads) sum += act(i);
        return sum;
      }));
    }
    int total = 0;
    for (auto& sum : sums) total += sum.get();
    return total;
  };
  run_all([&](int i) {
    return clients[i] = std::make_unique<StoreClient>(client_settings(server.port(), {"secret", 1})), 1;
  });
  run_all([&](int i) {
    clients[i]->set(fmt::format("rank/{}", i), fmt::format("{}", i));
    clients[i]->add("count", 1);
    return 1;
  });
  CHECK(clients[0]->get("count") == "1000");
  std::vector<std::string> keys;
  for (int i = 0; i < kClients; ++i) keys.push_back(fmt::format("rank/{}", i));
  CHECK(run_all([&](int i) { return clients[i]->wait(keys, 60s).at(i) == fmt::format("{}", i) ? 1 : 0; }) == kClients);
}

}  // namespace trainyard::rendezvous
