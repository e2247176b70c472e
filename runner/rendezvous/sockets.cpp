#include "rendezvous/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/error.h"

namespace trainyard::rendezvous {
namespace {

constexpr int kBacklog = 4096;  // a thousand ranks come at once; the kernel caps it at net.core.somaxconn

struct FreeList {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};

void set_option(int socket, int level, int option, int value) {
  static_cast<void>(
      ::setsockopt(socket, level, option, &value, sizeof value));  // an option that is missing only costs comfort
}

Address any_address(int family, uint16_t port, bool loopback) {
  Address address;
  if (family == AF_INET6) {
    auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
    *v6 = {};
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    v6->sin6_addr = loopback ? in6addr_loopback : in6addr_any;
    address.length = sizeof(sockaddr_in6);
  } else {
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
    *v4 = {};
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    v4->sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY);
    address.length = sizeof(sockaddr_in);
  }
  return address;
}

/// A listening socket, or none with errno set.
UniqueFd try_listen(const Address& address) {
  UniqueFd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return socket;
  set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.family() == AF_INET6) set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(socket.get(), address.get(), address.length) == 0 && ::listen(socket.get(), kBacklog) == 0) return socket;
  const int error = errno;
  socket.reset();
  errno = error;
  return socket;
}

}  // namespace

bool Address::is_loopback() const {
  if (family() == AF_INET) return (ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr) >> 24) == 127;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

std::string Address::host() const {
  char text[NI_MAXHOST] = "";
  if (::getnameinfo(get(), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "?";
  const std::string_view mapped = "::ffff:";  // an IPv4 peer of a dual-stack socket
  return std::string_view(text).starts_with(mapped) ? text + mapped.size() : text;
}

uint16_t Address::port() const {
  return ntohs(family() == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port
                                    : reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

Resolved resolve(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(endpoint.host.c_str(), fmt::format("{}", endpoint.port).c_str(), &hints, &list);
  if (error == EAI_SYSTEM && errno == EMFILE) throw std::system_error(errno, std::system_category(), "getaddrinfo");
  if (error != 0) return {{}, error == EAI_SYSTEM ? reason_of(errno) : ::gai_strerror(error)};
  const std::unique_ptr<addrinfo, FreeList> owned(list);
  Resolved resolved;
  for (const addrinfo* entry = list; entry; entry = entry->ai_next) {
    Address address;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.length = entry->ai_addrlen;
    resolved.addresses.push_back(address);
  }
  return resolved;
}

std::string reason_of(int error_number) {
  return std::system_category().message(error_number);
}

Address local_address(int socket) {
  Address address;
  address.length = sizeof address.storage;
  if (::getsockname(socket, address.get(), &address.length) != 0)
    throw std::system_error(errno, std::system_category(), "getsockname");
  return address;
}

void make_prompt(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 30000);
}

UniqueFd listen_on(const std::string& host, uint16_t port) {
  in_addr v4{};
  in6_addr v6{};
  const bool loopback_v4 =
      host == "localhost" || (::inet_pton(AF_INET, host.c_str(), &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127);
  const bool loopback_v6 = ::inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
  UniqueFd socket;
  if (!loopback_v4) socket = try_listen(any_address(AF_INET6, port, loopback_v6));
  // A kernel without IPv6 has no such family, or has it with no address.
  const bool may_be_v4 = loopback_v4 || (!loopback_v6 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL));
  if (!socket.valid() && may_be_v4) socket = try_listen(any_address(AF_INET, port, loopback_v4));
  if (socket.valid()) return socket;
  const int error = errno;
  const char* const hint =
      error == EADDRINUSE ? "; another program, or another job's master, listens there: set another MASTER_PORT" : "";
  throw InputError(fmt::format("cannot listen on port {} for the rendezvous: {}{}", port, reason_of(error), hint));
}

UniqueFd adopt_listener(int fd) {
  int listens = 0;
  socklen_t size = sizeof listens;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens) return {};
  UniqueFd socket(fd);
  const bool is_ready =
      ::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) == 0;
  if (!is_ready) throw std::system_error(errno, std::system_category(), "fcntl");
  return socket;
}

void allow_many_files() {
  rlimit limit{};
  constexpr rlim_t kEnough = 65536;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kEnough) return;
  limit.rlim_cur = std::min(limit.rlim_max, kEnough);
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));  // refused: accepting then says what is missing
}

}  // namespace trainyard::rendezvous
