#pragma once

#include "decide/rules/gang.h"

namespace trainyard::decide {

/// What stands for the master's name in a template of an init container; cli/ puts it there in place of the
/// reference's {{.MasterAddr}}.
inline constexpr const char* kMasterPlaceholder = "trainyard-master-addr";

/// Whether the replica's pod waits for its master's name before its containers start: for images that do not wait by
/// themselves.
[[nodiscard]] bool wants_init_container(const api::Job& job, const Replica& replica, const Settings& settings);

/// These init containers wait, in a pod of this template. One of the template that has the same name takes the place of
/// one of them. They ask for no more rights than the job's own container, and for no capability, so that a namespace which
/// takes that (Pod Security "restricted") takes them.
[[nodiscard]] Json init_containers(const api::Job& job, const Json& pod_template, const Settings& settings);

}  // namespace trainyard::decide
