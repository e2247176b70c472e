#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"

namespace trainyard::local {

/// The job's pods are found at this host's loopback.
inline constexpr const char* kLoopback = "127.0.0.1";

/// `text` with the name of each service of the job (`<job>-master-0`, also with `.<namespace>`, `.svc` and the
/// cluster's domain behind it) replaced by the loopback address. A name that is a part of a longer word or of a file's
/// path stays.
[[nodiscard]] std::string with_loopback(std::string_view text, const api::Job& job);

/// Gives the job ports that are free here: the ports that its ranks meet at (`pytorchjob-port`, elasticPolicy.rdzvPort)
/// stay as they are where they are free and not `taken` by another job, else they become ones that are. What was
/// changed, a line each.
[[nodiscard]] std::vector<std::string> take_free_ports(api::Job& job, std::set<int>& taken);

}  // namespace trainyard::local
