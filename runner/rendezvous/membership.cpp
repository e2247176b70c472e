#include "rendezvous/membership.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "base/host_name.h"
#include "base/text.h"
#include "rendezvous/interfaces.h"
#include "rendezvous/join.h"
#include "rendezvous/memory_store.h"
#include "rendezvous/store_client.h"

namespace trainyard::rendezvous {
namespace {

using std::chrono::milliseconds;

constexpr const char* kLeftCount = "left";
constexpr const char* kAllLeft = "left/all";

/// Rank 0's store. `launch` may have bound the port already and left it open for us, so that nobody can take it
/// between.
std::unique_ptr<StoreServer> serve(const Place& place, const JoinSettings& settings) {
  ServerSettings server;
  server.credentials = {settings.token, place.generation, place.restart};
  if (place.master) server.host = place.master->host, server.port = place.master->port;
  const auto inherited = settings.environment.find("TRAINYARD_STORE_LISTENER");
  if (inherited != settings.environment.end()) {
    server.listener = adopt_listener(static_cast<int>(parse_int(inherited->second).value_or(-1)));
  }
  return std::make_unique<StoreServer>(std::move(server));
}

/// Rank 0's own address by the name that the others use for it; none where that name is not this host's.
std::optional<Address> own_address(const Place& place, std::span<const Interface> interfaces) {
  for (const Address& address : resolve(*place.master).addresses) {
    const auto is_it = [&](const Interface& one) { return one.address.host() == address.host(); };
    if (address.is_loopback() || std::ranges::any_of(interfaces, is_it)) return address;
  }
  return std::nullopt;
}

/// Where this rank finds the store. Rank 0 takes the short way to its own, unless MASTER_ADDR names another host: then
/// that may be a service in front of this one, or rank 0's number was given to two hosts, which must come to light.
Endpoint store_for(const Place& place, const StoreServer* server, const std::optional<Address>& own) {
  const bool is_elsewhere = !own && !resolve(*place.master).addresses.empty();
  if (!server || is_elsewhere) return *place.master;
  return {own && own->is_loopback() ? own->host() : "127.0.0.1", server->port()};
}

/// The route by which others see this rank, before any rule.
Address route_of(const StoreClient& store, const std::optional<Address>& own) {
  return own && !own->is_loopback() ? *own : store.local_address();
}

void wait_until_alone(const StoreServer& server, milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (server.clients() > 1 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(10));
  }
}

/// Where there is no master but another way to talk (MPI), rank 0 tells its address.
void share_master(Place& place, const StoreServer* server, const InterfaceRule& rule, const JoinSettings& settings) {
  if (!settings.share_from_rank_0) {
    throw InputError(
        "MASTER_ADDR is not set, so the ranks cannot meet; set MASTER_ADDR and MASTER_PORT, or use comm.backend mpi "
        "under mpirun");
  }
  std::string told;
  if (server) {
    const Reach reach = place.local_world == place.world ? Reach::OneHost : Reach::ManyHosts;
    told = Endpoint{choose_address(rule, local_interfaces(), std::nullopt, reach).host(), server->port()}.text();
  }
  const std::string text = settings.share_from_rank_0(told);
  const size_t colon = text.rfind(':');
  const auto port = parse_int(std::string_view(text).substr(colon + 1));
  if (colon == std::string::npos || !port)
    throw PeerError(fmt::format("rank 0 told '{}' for the master's address", text));
  std::string host = text.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  place.master = Endpoint{host, static_cast<uint16_t>(*port)};
}

std::string fresh_life() {
  std::string life;
  for (const char byte : fresh_nonce().substr(0, 8)) life += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return life;
}

Member self_of(const Place& place, const JoinSettings& settings, std::string address) {
  return {place.rank,         place.world,     host_name(),          ::getpid(),
          std::move(address), settings.config, settings.config_text, fresh_life()};
}

/// The line that NCCL logs as "NET/Socket : Using [0]eth0:10.0.0.1".
std::string interface_line(int rank, const Address& address, std::span<const Interface> interfaces,
                           const InterfaceRule& rule) {
  const auto found =
      std::ranges::find_if(interfaces, [&](const Interface& each) { return each.address.host() == address.host(); });
  return fmt::format("NCCL_DEBUG=INFO: rank {} uses the network interface {}, address {}{}", rank,
                     found == interfaces.end() ? "of the route to the master" : found->name, address.host(),
                     rule.is_given() ? fmt::format(" ({})", rule.text()) : "");
}

Membership alone(const Place& place, const JoinSettings& settings) {
  return {place, nullptr, std::make_unique<MemoryStore>(), {self_of(place, settings, "127.0.0.1")}, settings.heartbeat};
}

std::vector<std::string> hosts_of(const std::vector<Member>& members) {
  std::vector<std::string> hosts;
  for (const Member& member : members) hosts.push_back(member.host);
  return hosts;
}

}  // namespace

Membership join(const Place& wanted, const JoinSettings& settings) {
  Place place = wanted;
  if (place.world == 1) return alone(place, settings);
  const auto deadline = std::chrono::steady_clock::now() + settings.timeout;
  const InterfaceRule rule = InterfaceRule::of(settings.environment);
  const std::vector<Interface> interfaces = local_interfaces();
  const Reach reach = place.local_world == place.world ? Reach::OneHost : Reach::ManyHosts;
  // First, as a rule that admits nothing is known in no time, and a wait would only hide it.
  const Address by_rule = choose_address(rule, interfaces, std::nullopt, reach);
  std::unique_ptr<StoreServer> server;
  if (place.rank == 0) server = serve(place, settings);
  if (!place.master) share_master(place, server.get(), rule, settings);

  const std::optional<Address> own = server ? own_address(place, interfaces) : std::nullopt;
  ClientSettings client;
  client.master = store_for(place, server.get(), own);
  client.credentials = {settings.token, place.generation, place.restart};
  client.timeout = settings.timeout;
  client.reply_timeout = settings.reply_timeout;
  client.refusal_grace = settings.refusal_grace;
  client.interrupted = settings.interrupted;
  if (rule.is_given()) client.source = by_rule.host();
  auto store = std::make_unique<StoreClient>(client);
  const Address address = choose_address(rule, interfaces, route_of(*store, own), reach);
  if (place.logs_meeting) {
    spdlog::info("NCCL_DEBUG=INFO: rank {} of {} reached the master {} from {}, and tells its peers {}", place.rank,
                 place.world, place.master->text(), store->local_address().host(), address.host());
  }
  if (place.logs_interface) spdlog::info(interface_line(place.rank, address, interfaces, rule));
  try {
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    auto members =
        meet(*store, self_of(place, settings, address.host()), {settings.timeout, left}, settings.interrupted);
    return {std::move(place), std::move(server), std::move(store), std::move(members), settings.heartbeat};
  } catch (const std::exception&) {
    if (server) wait_until_alone(*server, Membership::kHearing);
    throw;
  }
}

Membership::Membership(Place place, std::unique_ptr<StoreServer> server, std::unique_ptr<Store> store,
                       std::vector<Member> members, const Heartbeat::Settings& heartbeat)
    : place_(std::move(place)), server_(std::move(server)), store_(std::move(store)), members_(std::move(members)) {
  if (place_.world > 1) heartbeat_ = std::make_unique<Heartbeat>(*store_, place_.rank, hosts_of(members_), heartbeat);
}

Membership::~Membership() {
  if (heartbeat_) store_->close();  // the beat may be waiting for a master that does not answer
}

std::string Membership::describe_silent() const {
  try {
    return describe(silent_ranks());
  } catch (const std::exception& error) {
    return error.what();
  }
}

void Membership::leave(milliseconds patience) {
  if (!heartbeat_) return;
  try {
    heartbeat_->leave();
    if (store_->add(kLeftCount, 1) == place_.world) store_->set(kAllLeft, "");
    if (server_) static_cast<void>(store_->wait(kAllLeft, patience));
  } catch (const std::exception& error) {
    spdlog::debug("rendezvous: at the end of rank {}: {}", place_.rank, error.what());
  }
  heartbeat_.reset();
}

void Membership::leave_last_words(const std::string& text, ExitCode code) noexcept {
  try {
    rendezvous::leave_last_words(*store_, {rank(), self().host, text, code});
  } catch (const std::exception&) {
    return;
  }
}

std::optional<LastWords> Membership::last_words() const noexcept {
  try {
    return last_words_in(*store_);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void Membership::let_others_hear(milliseconds patience) const {
  if (server_) wait_until_alone(*server_, patience);
}

}  // namespace trainyard::rendezvous
