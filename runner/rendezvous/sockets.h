#pragma once

#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "rendezvous/place.h"

// The few socket calls of the store, with errors as text.
namespace trainyard::rendezvous {

/// An IPv4 or IPv6 address with its port.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] int family() const { return storage.ss_family; }
  [[nodiscard]] bool is_loopback() const;
  [[nodiscard]] std::string host() const;  ///< numeric, without the port: "10.0.0.7", "fd00::7"
  [[nodiscard]] uint16_t port() const;
};

/// What a name stands for now. `error` says why it stands for nothing.
struct Resolved {
  std::vector<Address> addresses;
  std::string error;
};
Resolved resolve(const Endpoint& endpoint);

/// The text of an errno.
std::string reason_of(int error_number);

/// Both ends of what is connected.
Address local_address(int socket);

/// Keeps small messages prompt, and has the kernel notice within about half a minute that the other machine is gone.
void make_prompt(int socket);

/// Listens on `port` (0: a free one) of every interface, IPv6 and IPv4 in one socket where the kernel has IPv6; of the
/// loopback alone where `host` is a loopback address. Throws InputError naming the port, where it is in use.
UniqueFd listen_on(const std::string& host, uint16_t port);

/// Takes over a socket that listens already; none where `fd` is anything else.
UniqueFd adopt_listener(int fd);

/// Allows this process as many open files as the system lets it: a store holds one for each client.
void allow_many_files();

}  // namespace trainyard::rendezvous
