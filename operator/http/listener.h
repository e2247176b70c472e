#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "common/unique_fd.h"

namespace trainyard::http {

struct Address {
  std::string host;  ///< numeric; "" = all interfaces, of both IP versions where the host has both
  uint16_t port = 0;
  bool operator==(const Address&) const = default;
};

/// ":8080", "127.0.0.1:8080", "[::1]:8080"; none where `text` is something else.
[[nodiscard]] std::optional<Address> parse_address(std::string_view text);

/// The address cannot be listened on; `what()` names it, its flag and what to do. The program ends with 2.
struct ListenError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A socket that listens on `address`, which `flag` ("--metrics-bind-address") gave. Throws ListenError.
[[nodiscard]] UniqueFd listen_on(const std::string& address, std::string_view flag);

/// The port of a listening socket: for addresses that leave its choice to the system (":0").
[[nodiscard]] uint16_t port_of(int fd);

/// Raises this process's limit of open files as far as it may. A server's connections stay below it in any case.
void raise_open_file_limit();

}  // namespace trainyard::http
