#pragma once

#include <optional>
#include <vector>

#include "decide/draft.h"

namespace trainyard::decide {

/// A replica that is lost to its gang, and why.
struct Loss {
  const Replica* replica;
  bool is_disruption;  ///< done to the pod from outside: it spends no budget
  api::RestartCause cause;
  /// The code of ended_container() decides what follows; the cause may name another container.
  std::optional<int> exit_code{};
};

/// Keeps the cause as the last one, and as the newest of the few that the status has.
void note_cause(api::Restarts& restarts, const api::RestartCause& cause);

/// The loss that the gang is restarted for: of several, a disruption, else the one that ended first, of those that are
/// no mere consequence of another's. None: nothing is lost.
[[nodiscard]] std::optional<Loss> loss_in_gang(const Draft& draft);

/// A mere consequence of another rank's loss: 138 (a peer was lost), 143 (asked to end).
[[nodiscard]] bool is_consequence(const Loss& loss);
[[nodiscard]] bool is_consequence(const api::Pod& pod);

/// Only consequences are to be seen, and the rank that caused them may be one whose end its kubelet has not told of
/// yet: until when to wait for that. None: what is to be known is known.
[[nodiscard]] std::optional<TimePoint> cause_may_come_until(const Loss& loss, const Draft& draft);

/// The loss of a replica whose pod has phase Failed.
[[nodiscard]] Loss loss_of_failed(const Replica& replica, TimePoint now);
/// Why a pod of phase Failed failed, as people read it.
[[nodiscard]] api::RestartCause cause_of_failure(const api::Pod& pod, TimePoint now);

/// True where the job's restart policy wants a failure with that exit code repeated. ExitCode: 128 and above, or none.
[[nodiscard]] bool is_retryable(const std::string& restart_policy, const std::optional<int>& exit_code);

/// The pod's node is gone or has not been ready for longer than the grace.
[[nodiscard]] bool is_on_lost_node(const api::Pod& pod, const Draft& draft);
/// When a node that is not ready now counts as lost; none where the pod's node is well.
[[nodiscard]] std::optional<TimePoint> node_lost_at(const api::Pod& pod, const Draft& draft);

/// The cause of a pod for which is_on_lost_node() holds.
[[nodiscard]] api::RestartCause cause_by_lost_node(const api::Pod& pod, const Draft& draft);

/// Names of the nodes that new pods of the job must not come to: what failed them, and what reports a fault.
[[nodiscard]] std::vector<std::string> nodes_to_avoid(const Draft& draft);

}  // namespace trainyard::decide
