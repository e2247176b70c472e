#pragma once

#include <optional>
#include <string>

#include "base/json.h"

namespace trainyard::api {

/// A container port's protocol, as the API server defaults it: "TCP".
[[nodiscard]] std::string protocol_of(const Json& port);

/// The place of the port at which the ranks meet among the ports of container pytorch: the one called pytorchjob-port,
/// else 23456/TCP under any name. None where no such port is there.
[[nodiscard]] std::optional<size_t> meeting_port(const Json& ports);

/// Appends the meeting port where there is none. A null becomes a list.
void add_meeting_port(Json& ports);

}  // namespace trainyard::api
