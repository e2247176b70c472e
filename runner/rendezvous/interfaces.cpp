#include "rendezvous/interfaces.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::rendezvous {
namespace {

struct FreeInterfaces {
  void operator()(ifaddrs* list) const noexcept { ::freeifaddrs(list); }
};

bool is_link_local(const Address& address) {
  if (address.family() != AF_INET6) return false;
  return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr);
}

std::string listed(std::span<const Interface> interfaces) {
  std::string text;
  for (const Interface& one : interfaces) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", one.name, one.address.host());
  }
  return text.empty() ? "none" : text;
}

/// How well peers can use it: the higher the better.
int rank_of(const Interface& one, const std::optional<Address>& route, Reach reach) {
  const bool is_route = route && one.address.host() == route->host();
  const bool is_loopback = one.address.is_loopback();
  const bool is_family = route ? one.address.family() == route->family() : one.address.family() == AF_INET;
  return (is_loopback && reach == Reach::ManyHosts ? 0 : 8) + (is_route ? 4 : 0) + (is_family ? 2 : 0) +
         (is_loopback ? 0 : 1);
}

}  // namespace

std::vector<Interface> local_interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw std::system_error(errno, std::system_category(), "getifaddrs");
  const std::unique_ptr<ifaddrs, FreeInterfaces> owned(list);
  std::vector<Interface> interfaces;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP)) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    Interface one{entry->ifa_name, {}};
    one.address.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&one.address.storage, entry->ifa_addr, one.address.length);
    interfaces.push_back(std::move(one));
  }
  return interfaces;
}

InterfaceRule InterfaceRule::of(const Environment& environment) {
  for (const char* const variable : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}) {
    const auto found = environment.find(variable);
    if (found != environment.end() && !found->second.empty()) return {variable, found->second};
  }
  return {"NCCL_SOCKET_IFNAME", ""};
}

InterfaceRule::InterfaceRule(std::string variable, std::string text)
    : variable_(std::move(variable)), text_(std::move(text)) {
  std::string_view rest = trim(text_);
  for (; !rest.empty() && (rest.front() == '^' || rest.front() == '='); rest.remove_prefix(1)) {
    (rest.front() == '^' ? excludes_ : exact_) = true;
  }
  for (const std::string& name : split(rest, ',')) {
    if (!trim(name).empty()) names_.emplace_back(trim(name));
  }
}

bool InterfaceRule::admits(std::string_view interface_name) const {
  if (names_.empty()) return true;
  const bool is_listed = std::ranges::any_of(names_, [&](const std::string& name) {
    return exact_ ? interface_name == name : interface_name.starts_with(name);
  });
  return is_listed != excludes_;
}

Address choose_address(const InterfaceRule& rule, std::span<const Interface> interfaces,
                       const std::optional<Address>& route, Reach reach) {
  const Interface* best = nullptr;
  for (const Interface& one : interfaces) {
    // A link-local address means nothing without its interface, which is another on the peer's host.
    if (!rule.admits(one.name) || is_link_local(one.address)) continue;
    if (!best || rank_of(one, route, reach) > rank_of(*best, route, reach)) best = &one;
  }
  if (best) return best->address;
  throw InputError(fmt::format("{} admits none of this host's network interfaces: {}",
                               rule.is_given() ? rule.text() : "no rule", listed(interfaces)));
}

}  // namespace trainyard::rendezvous
