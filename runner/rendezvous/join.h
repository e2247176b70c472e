#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "rendezvous/member.h"
#include "rendezvous/store.h"

namespace trainyard::rendezvous {

struct Patience {
  std::chrono::milliseconds timeout;  ///< as it was set, for messages
  std::chrono::milliseconds left;     ///< of it
};

/// The protocol of join() over any store: this rank says who it is, and all ranks get one verdict, the list of members
/// or one error. Whoever finds a contradiction, or that nobody is missing any more, writes the verdict; the first
/// stands. Throws as join() does.
std::vector<Member> meet(Store& store, const Member& self, Patience patience, const std::function<bool()>& interrupted);

}  // namespace trainyard::rendezvous
