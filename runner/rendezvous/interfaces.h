#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/place.h"
#include "rendezvous/sockets.h"

// Which of this host's network interfaces the ranks meet on.
namespace trainyard::rendezvous {

/// One address of one interface that is up.
struct Interface {
  std::string name;  ///< "eth0"
  Address address;
};

/// The interfaces of this host, those with several addresses several times.
std::vector<Interface> local_interfaces();

/// NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME: a list of names separated by commas. A name stands for every interface
/// that begins with it; `=` before the list makes names exact, `^` excludes them ("^docker,lo", "=eth0", "^=lo").
class InterfaceRule {
 public:
  /// GLOO_SOCKET_IFNAME where set, else NCCL_SOCKET_IFNAME, else a rule that admits all.
  static InterfaceRule of(const Environment& environment);
  /// The rule as `variable` has it; "" admits all.
  InterfaceRule(std::string variable, std::string text);

  [[nodiscard]] bool admits(std::string_view interface_name) const;
  [[nodiscard]] bool is_given() const { return !names_.empty(); }
  [[nodiscard]] std::string text() const { return variable_ + "=" + text_; }

 private:
  std::string variable_, text_;
  bool excludes_ = false, exact_ = false;
  std::vector<std::string> names_;
};

enum class Reach { OneHost, ManyHosts };

/// The local address that this rank's peers should use: one that the rule admits, of `route`'s family where there is
/// one, `route` itself (this end of the connection to the master) where the rule admits it. A loopback address serves
/// only peers on one host. Throws InputError listing the interfaces where the rule admits none.
Address choose_address(const InterfaceRule& rule, std::span<const Interface> interfaces,
                       const std::optional<Address>& route, Reach reach);

}  // namespace trainyard::rendezvous
