#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/unique_fd.h"

namespace trainyard::test {

/// A connection to the loopback that has sent nothing. Throws std::system_error.
UniqueFd connect_to(uint16_t port);

void send_text(const UniqueFd& connection, const std::string& text);

/// What comes until the other side closes, or until `enough` is in it; waits 20 s at most.
std::string receive(const UniqueFd& connection, const std::string& enough = "");

/// One request on a connection of its own.
std::string exchange(uint16_t port, const std::string& request);

inline std::string get(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
}

/// A certificate for 127.0.0.1 that signed itself, and its key, as PEM.
struct SelfSigned {
  std::string certificate, key;
};
SelfSigned make_self_signed(long serial);

}  // namespace trainyard::test
