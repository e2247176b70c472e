#include "http/listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace trainyard::http {
namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

std::optional<SocketAddress> socket_address_of(const Address& address) {
  SocketAddress result;
  auto& v6 = reinterpret_cast<sockaddr_in6&>(result.storage);
  auto& v4 = reinterpret_cast<sockaddr_in&>(result.storage);
  if (address.host.empty() || ::inet_pton(AF_INET6, address.host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(address.port);
    result.size = sizeof v6;
    return result;
  }
  if (::inet_pton(AF_INET, address.host.c_str(), &v4.sin_addr) != 1) return std::nullopt;
  v4.sin_family = AF_INET;
  v4.sin_port = htons(address.port);
  result.size = sizeof v4;
  return result;
}

/// Where there is no socket, errno says why.
UniqueFd try_listen(const SocketAddress& address, bool both_versions) {
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return fd;
  const int on = 1, v6_only = both_versions ? 0 : 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.storage.ss_family == AF_INET6)
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0 &&
      ::listen(fd.get(), SOMAXCONN) == 0)
    return fd;
  const int reason = errno;
  fd.reset();
  errno = reason;
  return fd;
}

const char* remedy_of(int error_number) {
  switch (error_number) {
    case EADDRINUSE:
      return "; another process has the port: end that one, or choose another port";
    case EACCES:
      return "; choose a port above 1023";
    case EADDRNOTAVAIL:
      return "; this host has no such address";
    default:
      return "";
  }
}

}  // namespace

std::optional<Address> parse_address(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  Address address;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size()) return std::nullopt;
  const bool is_bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  if (is_bracketed != (host.find(':') != std::string_view::npos)) return std::nullopt;
  address.host = host;
  if (!socket_address_of(address)) return std::nullopt;
  return address;
}

UniqueFd listen_on(const std::string& address, std::string_view flag) {
  const auto parsed = parse_address(address);
  if (!parsed)
    throw ListenError(fmt::format(
        R"({}: "{}" is no address to listen on; give HOST:PORT with a numeric host, or :PORT for all interfaces)", flag,
        address));
  UniqueFd fd = try_listen(*socket_address_of(*parsed), parsed->host.empty());
  if (!fd.valid() && parsed->host.empty() && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
    fd = try_listen(*socket_address_of({"0.0.0.0", parsed->port}), false);  // a host without IPv6
  if (!fd.valid()) {
    const int reason = errno;
    throw ListenError(
        fmt::format("{}: cannot listen on {}: {}{}", flag, address, std::strerror(reason), remedy_of(reason)));
  }
  return fd;
}

uint16_t port_of(int fd) {
  SocketAddress address;
  address.size = sizeof address.storage;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.size);
  const bool is_v6 = address.storage.ss_family == AF_INET6;
  return ntohs(is_v6 ? reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_port
                     : reinterpret_cast<const sockaddr_in&>(address.storage).sin_port);
}

void raise_open_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace trainyard::http
