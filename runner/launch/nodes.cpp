#include "launch/nodes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "rendezvous/interfaces.h"
#include "rendezvous/sockets.h"
#include "rendezvous/stop.h"
#include "rendezvous/store_client.h"
#include "rendezvous/store_server.h"

namespace trainyard::launch {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
namespace rdv = rendezvous;

constexpr const char* kCount = "nodes/count";
constexpr const char* kRoster = "nodes/roster";
constexpr const char* kRead = "nodes/read";
constexpr milliseconds kSlice{500};  // how late SIGTERM may be heard

std::string node_key(int64_t node) {
  return fmt::format("nodes/{}", node);
}

/// The node that the endpoint names keeps the store: torchrun's rule, as no node has a number yet.
bool is_host_of(const rdv::Endpoint& endpoint, const std::optional<int>& node_rank) {
  if (node_rank) return *node_rank == 0;
  char name[256] = "";
  static_cast<void>(::gethostname(name, sizeof name - 1));
  if (endpoint.host == name || endpoint.host.starts_with(std::string(name) + ".")) return true;
  const auto interfaces = rdv::local_interfaces();
  return std::ranges::any_of(rdv::resolve(endpoint).addresses, [&](const rdv::Address& address) {
    return address.is_loopback() || std::ranges::any_of(interfaces, [&](const rdv::Interface& one) {
             return one.address.host() == address.host();
           });
  });
}

/// Waits for `key` until the deadline; false where it did not come.
bool await(rdv::Store& store, const std::string& key, Clock::time_point deadline, const rdv::SignalWatch& signals) {
  const std::vector<std::string> keys{key};
  for (;;) {
    if (signals.is_requested()) throw TerminatedError("asked to stop while waiting for other nodes");
    const auto left = std::clamp(std::chrono::ceil<milliseconds>(deadline - Clock::now()), milliseconds(0), kSlice);
    if (store.try_wait(keys, left).missing.empty()) return true;
    if (Clock::now() >= deadline) return false;
  }
}

/// The keeper's decision: who is in, itself first, as rank 0 must be where the master's name leads; then in the order
/// of their coming. Nodes that came and went are not.
Json roster_of(rdv::Store& store, const LaunchOptions& options, int64_t keeper, uint16_t port) {
  Json nodes = Json::array();
  const int64_t count = store.add(kCount, 0);
  for (int64_t node = 0; node < count; ++node) {
    const auto ranks = store.get(node_key(node));
    if (!ranks) continue;
    const Json entry{{"node", node}, {"ranks", parse_int(*ranks).value()}};
    nodes.insert(node == keeper ? nodes.begin() : nodes.end(), entry);
  }
  while (nodes.size() > static_cast<size_t>(options.node.max_nodes)) nodes.erase(nodes.size() - 1);
  return {{"port", port}, {"nodes", std::move(nodes)}};
}

/// This node's part of the roster.
LocalWorld placed(LocalWorld world, const Json& roster, int64_t node, const LaunchOptions& options) {
  world.world = 0;
  bool is_in = false;
  for (const Json& one : roster.at("nodes")) {
    if (one.at("node") == node) is_in = true, world.first_rank = world.world;
    if (!is_in) ++world.node_rank;
    world.world += one.at("ranks").get<int>();
  }
  if (!is_in) throw PeerError("the world was formed without this node, which came too late");
  world.master = {options.master->host, roster.at("port")};
  return world;
}

}  // namespace

LocalWorld agree_on_nodes(const LaunchOptions& options, LocalWorld world, const rdv::Environment& environment) {
  const auto deadline = Clock::now() + options.rendezvous_timeout;
  const rdv::SignalWatch signals;
  const rdv::Credentials credentials{rdv::job_token(environment), options.generation};
  std::unique_ptr<rdv::StoreServer> server;
  if (is_host_of(*options.master, options.node.node_rank)) {
    rdv::ServerSettings settings;
    settings.host = options.master->host;
    settings.port = options.master->port;
    settings.credentials = credentials;
    server = std::make_unique<rdv::StoreServer>(std::move(settings));
  }
  rdv::ClientSettings client;
  client.master =
      server ? rdv::Endpoint{options.master->host == "::1" ? "::1" : "127.0.0.1", server->port()} : *options.master;
  client.credentials = credentials;
  client.timeout = options.rendezvous_timeout;
  client.interrupted = [&] { return signals.is_requested(); };
  rdv::StoreClient store(client);
  const int64_t node = store.add(kCount, 1) - 1;
  store.claim(node_key(node), fmt::format("{}", world.ranks));
  if (server) {
    await(store, node_key(options.node.max_nodes - 1), deadline, signals);
    // Bound now and let go just before the ranks start: rank 0 is on this node.
    const UniqueFd rank_port = rdv::listen_on(options.master->host, 0);
    const Json roster = roster_of(store, options, node, rdv::local_address(rank_port.get()).port());
    if (roster.at("nodes").size() < static_cast<size_t>(options.node.min_nodes)) {
      throw PeerError(
          fmt::format("{} of at least {} nodes came within {}; see the other nodes' logs, or raise --rdzv-conf timeout",
                      roster.at("nodes").size(), options.node.min_nodes, human_duration(options.rendezvous_timeout)));
    }
    store.set(kRoster, roster.dump());
  } else if (!await(store, kRoster, deadline + kSlice * 4, signals)) {
    throw PeerError(fmt::format("the master {} formed no world within {}", options.master->text(),
                                human_duration(options.rendezvous_timeout)));
  }
  const Json roster = Json::parse(store.get(kRoster).value());
  const auto nodes = static_cast<int64_t>(roster.at("nodes").size());
  if (store.add(kRead, 1) == nodes) store.set("nodes/all read", "");
  // The store goes with its keeper: it stays until all have read, or a little longer than a reading takes.
  if (server) await(store, "nodes/all read", Clock::now() + std::chrono::seconds(10), signals);
  return placed(std::move(world), roster, node, options);
}

}  // namespace trainyard::launch
