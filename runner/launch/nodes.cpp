#include "launch/nodes.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

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

constexpr const char* kCount = "nodes/count";      // who comes takes a number here,
constexpr const char* kArrived = "nodes/arrived";  // and counts itself here once its key is there
constexpr const char* kRoster = "nodes/roster";
constexpr const char* kRead = "nodes/read";
constexpr milliseconds kSlice{500};  // how late SIGTERM may be heard
constexpr milliseconds kFarewell = std::chrono::seconds(10);

std::string node_key(int64_t id) {
  return fmt::format("nodes/{}", id);
}

std::string arrival_key(int64_t count) {
  return fmt::format("nodes/arrived/{}", count);
}

/// A node that has come and is there still.
struct Node {
  int64_t id;  ///< in the order of their coming
  int ranks;
  int restart;
  int number;  ///< as its environment has it; where that has none, after all that have one
};

std::string text_of(int ranks, int restart, const std::optional<int>& number) {
  return fmt::format("{} {} {}", ranks, restart, number.value_or(std::numeric_limits<int>::max()));
}

Node node_of(int64_t id, const std::string& text) {
  const auto words = split(text, ' ');
  if (words.size() != 3) throw PeerError(fmt::format("a node introduces itself by '{}': another version?", text));
  const auto word = [&](size_t index) { return static_cast<int>(parse_int(words[index]).value()); };
  return {id, word(0), word(1), word(2)};
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

/// This node's part of the roster.
LocalWorld placed(LocalWorld world, const Json& roster, int64_t id, const LaunchOptions& options) {
  world.world = 0;
  bool is_in = false;
  for (const Json& one : roster.at("nodes")) {
    if (one.at("id") == id) is_in = true, world.first_rank = world.world;
    if (!is_in) ++world.node_rank;
    world.world += one.at("ranks").get<int>();
  }
  if (!is_in) throw PeerError("the world was formed without this node, which came too late");
  world.master = {options.master->host, roster.at("port")};
  world.restart = roster.at("restart");
  return world;
}

/// Where the nodes meet: the store at the endpoint, which one of them keeps until all know the roster.
class Meeting {
 public:
  Meeting(const LaunchOptions& options, const rdv::Environment& environment);

  /// Comes in, with so many ranks, for the so-many-th time; its id.
  int64_t enter(int ranks, int restart);
  /// The keeper's decision, told to all.
  void form_world(int64_t own_id);
  Json roster();
  /// The store goes with its keeper: it stays until all have read, or a little longer than a reading takes.
  void leave(const Json& roster);
  [[nodiscard]] bool is_keeper() const { return server_ != nullptr; }

 private:
  [[nodiscard]] rdv::ClientSettings client_settings(const rdv::Credentials& credentials) const;
  std::vector<Node> present();
  std::vector<Node> gather();
  bool await(const std::string& key, Clock::time_point deadline);
  void require_wanted() const;

  const LaunchOptions& options_;
  const Clock::time_point deadline_ = Clock::now() + options_.rendezvous_timeout;
  const rdv::SignalWatch signals_;
  std::unique_ptr<rdv::StoreServer> server_;  ///< the keeper's
  std::optional<rdv::StoreClient> store_;
};

Meeting::Meeting(const LaunchOptions& options, const rdv::Environment& environment) : options_(options) {
  const rdv::Credentials credentials{rdv::job_token(environment), options.generation};
  if (is_host_of(*options.master, options.node.node_rank)) {
    rdv::ServerSettings settings;
    settings.host = options.master->host;
    settings.port = options.master->port;
    settings.credentials = credentials;
    server_ = std::make_unique<rdv::StoreServer>(std::move(settings));
  }
  store_.emplace(client_settings(credentials));
}

rdv::ClientSettings Meeting::client_settings(const rdv::Credentials& credentials) const {
  rdv::ClientSettings client;
  client.master = *options_.master;
  if (server_) client.master = {options_.master->host == "::1" ? "::1" : "127.0.0.1", server_->port()};
  client.credentials = credentials;
  client.timeout = options_.rendezvous_timeout;
  client.interrupted = [this] { return signals_.is_requested(); };
  return client;
}

int64_t Meeting::enter(int ranks, int restart) {
  const int64_t id = store_->add(kCount, 1) - 1;
  store_->claim(node_key(id), text_of(ranks, restart, options_.node.node_rank));
  store_->set(arrival_key(store_->add(kArrived, 1)), "");
  return id;
}

void Meeting::require_wanted() const {
  if (signals_.is_requested()) throw TerminatedError("asked to stop while waiting for other nodes");
}

/// Waits for `key` until the deadline; false where it did not come.
bool Meeting::await(const std::string& key, Clock::time_point deadline) {
  const std::vector<std::string> keys{key};
  for (;;) {
    require_wanted();
    const auto left = std::clamp(std::chrono::ceil<milliseconds>(deadline - Clock::now()), milliseconds(0), kSlice);
    if (store_->try_wait(keys, left).missing.empty()) return true;
    if (Clock::now() >= deadline) return false;
  }
}

/// Nodes that came and went are not; of two with one number the later one is, as a container that was started again.
std::vector<Node> Meeting::present() {
  std::vector<Node> nodes;
  const int64_t count = store_->add(kCount, 0);
  for (int64_t id = 0; id < count; ++id) {
    const auto text = store_->get(node_key(id));
    if (!text) continue;
    const Node node = node_of(id, *text);
    if (node.number != std::numeric_limits<int>::max())
      std::erase_if(nodes, [&](const Node& earlier) { return earlier.number == node.number; });
    nodes.push_back(node);
  }
  return nodes;
}

/// Who is there once all that are wanted have come, or the time is over.
std::vector<Node> Meeting::gather() {
  const rdv::NodePlace& place = options_.node;
  const auto wanted =
      static_cast<size_t>(std::clamp(place.nodes_now.value_or(place.max_nodes), place.min_nodes, place.max_nodes));
  constexpr auto kNotYet = Clock::time_point::max();
  auto last_call = kNotYet;
  size_t told = 0;
  for (;;) {
    const int64_t arrived = store_->add(kArrived, 0);  // before looking: who comes meanwhile ends the wait below
    std::vector<Node> nodes = present();
    const bool is_enough = nodes.size() >= static_cast<size_t>(options_.node.min_nodes);
    if (!is_enough) last_call = kNotYet;
    if (is_enough && options_.last_call && last_call == kNotYet) last_call = Clock::now() + *options_.last_call;
    const auto until = std::min(last_call, deadline_);
    if (nodes.size() >= wanted || Clock::now() >= until) return nodes;
    if (nodes.size() != std::exchange(told, nodes.size()))
      spdlog::info("rendezvous: {} of {} nodes are here; in {} {} are enough", nodes.size(), wanted,
                   human_duration(std::chrono::ceil<std::chrono::seconds>(until - Clock::now())),
                   options_.node.min_nodes);
    static_cast<void>(await(arrival_key(arrived + 1), until));
  }
}

/// The keeper comes first, as rank 0 must be where the master's name leads; then they stand by their numbers.
void Meeting::form_world(int64_t own_id) {
  std::vector<Node> nodes = gather();
  if (nodes.size() < static_cast<size_t>(options_.node.min_nodes)) {
    throw PeerError(fmt::format(
        "{} of at least {} nodes came within {}; see the other nodes' logs, or raise rendezvous.timeout (launch: "
        "--rdzv-conf timeout)",
        nodes.size(), options_.node.min_nodes, human_duration(options_.rendezvous_timeout)));
  }
  std::ranges::sort(nodes, {}, [&](const Node& node) { return std::tuple(node.id != own_id, node.number, node.id); });
  if (nodes.size() > static_cast<size_t>(options_.node.max_nodes)) nodes.resize(options_.node.max_nodes);
  Json listed = Json::array();
  int restart = 0;  // a node may have lost its ranks once more than the others: all count as it does
  for (const Node& node : nodes) {
    listed.push_back({{"id", node.id}, {"ranks", node.ranks}});
    restart = std::max(restart, node.restart);
  }
  // Bound now and let go just before the ranks start: rank 0 is on this node.
  const UniqueFd rank_port = rdv::listen_on(options_.master->host, 0);
  const Json roster{{"port", rdv::local_address(rank_port.get()).port()}, {"restart", restart}, {"nodes", listed}};
  store_->set(kRoster, roster.dump());
}

Json Meeting::roster() {
  if (!await(kRoster, deadline_ + kSlice * 4)) {
    throw PeerError(fmt::format("the master {} formed no world within {}", options_.master->text(),
                                human_duration(options_.rendezvous_timeout)));
  }
  return Json::parse(store_->get(kRoster).value());
}

void Meeting::leave(const Json& roster) {
  if (store_->add(kRead, 1) == static_cast<int64_t>(roster.at("nodes").size())) store_->set("nodes/all read", "");
  if (server_) static_cast<void>(await("nodes/all read", Clock::now() + kFarewell));
  require_wanted();
}

}  // namespace

LocalWorld agree_on_nodes(const LaunchOptions& options, LocalWorld world, const rdv::Environment& environment) {
  Meeting meeting(options, environment);
  const int64_t id = meeting.enter(world.ranks, world.restart);
  if (meeting.is_keeper()) meeting.form_world(id);
  const Json roster = meeting.roster();
  LocalWorld mine = placed(std::move(world), roster, id, options);
  meeting.leave(roster);
  return mine;
}

}  // namespace trainyard::launch
