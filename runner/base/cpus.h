#pragma once

#include <optional>
#include <string_view>

namespace trainyard {

/// The CPUs that the ranks of this node share: those that this process may run on, at most the container's limit, and
/// at most `granted`, the text of TRAINYARD_CPUS: what a pod asks for, which the container does not show. 0, as
/// Kubernetes tells it of a pod that asks for none, grants all. Throws InputError where `granted` is no whole number.
int cpus_here(std::optional<std::string_view> granted);

/// The CPUs that a limit of cgroup v2's cpu.max ("150000 100000") allows, rounded up; none for "max 100000" or
/// nonsense.
std::optional<int> cpus_of_limit(std::string_view cpu_max);

}  // namespace trainyard
