#include "decide/rules/stall.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/annotations.h"
#include "base/text.h"
#include "decide/objects/names.h"
#include "decide/rules/limits.h"
#include "decide/rules/progress.h"

namespace trainyard::decide {
namespace {

using namespace std::chrono_literals;

/// The trainer posts every 5 s: of a rank 0 that has not for as long nothing comes any more.
constexpr auto kQuiet = 15s;
/// The time from a rank's end to the post that calls it silent: 5 s between beats, 15 s without one, 5 s between posts.
constexpr auto kNamedWithin = 25s;
/// The time from a node's end to its Ready condition: Kubernetes waits for 40 to 50 s.
constexpr auto kNodeToldWithin = 60s;

/// Ranks that are silent, and the pod of the first.
struct Silent {
  std::string text;                  ///< "rank 2, in pod job-worker-1 on node n2"
  const Replica* replica = nullptr;  ///< null: no rank is silent
};

const Replica* replica_of(int rank, int world_size, const Draft& draft) {
  const auto& replicas = draft.gang.replicas;
  const int places = static_cast<int>(replicas.size());
  const bool is_told = world_size > 0 && world_size % places == 0;
  const int ranks_a_pod = std::max(is_told ? world_size / places : processes_per_replica(draft.job()), 1);
  const int place = rank / ranks_a_pod;
  return place < places ? &replicas[static_cast<size_t>(place)] : nullptr;
}

std::string place_text(const Replica& replica) {
  const std::string node = replica.pod ? replica.pod->node : "";
  return fmt::format(", in pod {}{}", replica.name, node.empty() ? "" : " on node " + node);
}

/// "rank 2", "ranks 2, 3 and 62 more, the first"
std::string ranks_text(const std::vector<int>& ranks) {
  constexpr size_t kShown = 8;
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  const auto shown = ranks.begin() + static_cast<std::ptrdiff_t>(std::min(ranks.size(), kShown));
  const size_t more = ranks.size() - std::min(ranks.size(), kShown);
  return fmt::format("ranks {}{}, the first", fmt::join(ranks.begin(), shown, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

Silent silent_of(const api::ProgressPost& post, const Draft& draft) {
  const std::vector<int>& ranks = post.progress.silent_ranks;
  if (!ranks.empty()) {
    const Replica* const first = replica_of(ranks.front(), post.world_size, draft);
    return {ranks_text(ranks) + (first ? place_text(*first) : ""), first};
  }
  const auto quiet_for = std::chrono::floor<std::chrono::seconds>(draft.now - post.progress.updated);
  if (quiet_for < kQuiet) return {};
  const Replica& master = draft.gang.replicas.front();
  return {fmt::format("rank 0, which has posted nothing for {}{}", human_duration(quiet_for), place_text(master)),
          &master};
}

/// Since when the deadline counts; none while it does not.
std::optional<TimePoint> counts_since(const api::ProgressPost& post, const Draft& draft) {
  const auto& running_since = draft.status.restarts.running_since;
  if (!running_since || !post.refusal.empty()) return std::nullopt;
  TimePoint since = std::max({*running_since, draft.seen.listens_since, post.progress.advanced});
  for (const Replica& replica : draft.gang.replicas) {
    if (!replica.pod || has_ended(*replica.pod)) continue;
    if (node_lost_at(*replica.pod, draft)) return std::nullopt;
    if (const api::Node* const node = draft.find_node(replica.pod->node)) since = std::max(since, node->ready_since);
  }
  return since;
}

/// A failure that is the job's last is not decided before a node's end would be known.
bool would_fail_the_job(const Draft& draft) {
  return is_budget_spent(draft) || draft.gang.replicas.front().spec->restart_policy == "Never";
}

api::RestartCause cause_at(const Replica* replica, const char* reason, std::string message, TimePoint now) {
  const bool is_placed = replica && replica->pod;
  return {replica ? replica->name : "", is_placed ? replica->pod->node : "", std::nullopt, reason, std::move(message),
          now};
}

}  // namespace

Timely<Loss> stall(const Draft& draft) {
  const auto deadline = progress_deadline_of(draft.job());
  const api::ProgressPost* const post = heard_post(draft);
  const auto since = deadline && post ? counts_since(*post, draft) : std::nullopt;
  if (!since) return {};
  const Silent silent = silent_of(*post, draft);
  TimePoint due = *since + *deadline;
  if (!silent.replica) due = std::max(due, *since + kNamedWithin);
  if (would_fail_the_job(draft)) due = std::max(due, *since + kNodeToldWithin);
  if (draft.now < due) return {.look_again = due};
  const auto stood = std::chrono::floor<std::chrono::seconds>(draft.now - *since);
  const std::string message =
      fmt::format("no progress for {}; {}", human_duration(stood),
                  silent.text.empty() ? "no rank is silent" : fmt::format("silent: {}", silent.text));
  return {Loss{silent.replica ? silent.replica : &draft.gang.replicas.front(), false,
               cause_at(silent.replica, kStalled, message, draft.now)}};
}

std::optional<Loss> silent_behind(const Loss& consequence, const Draft& draft) {
  const api::ProgressPost* const post = heard_post(draft);
  if (!post || !is_consequence(consequence)) return std::nullopt;
  for (const int rank : post->progress.silent_ranks) {
    const Replica* const replica = replica_of(rank, post->world_size, draft);
    if (!replica || !replica->pod || !is_current(*replica->pod, draft.status) || has_ended(*replica->pod)) continue;
    const api::RestartCause& told = consequence.cause;
    return Loss{replica, false,
                cause_at(replica, "Silent",
                         fmt::format("rank {} was silent when {} ended with code {}: {}", rank, told.pod,
                                     told.exit_code.value_or(0), told.message),
                         draft.now)};
  }
  return std::nullopt;
}

Plan forgiven_stall(const Draft& draft) {
  const auto& last = draft.status.restarts.last_cause;
  if (!last || last->reason != kStalled || draft.status.restarts.count == 0) return {};
  const api::Node* const node = draft.find_node(last->node);
  if (!node || node->is_ready || node->ready_since + 5s < last->time) return {};  // calendars of two machines differ
  if (node->ready_since > last->time + kNodeToldWithin) return {};
  Plan plan = draft.with_status();
  api::Restarts& restarts = plan.status->restarts;
  auto& cause = restarts.last_cause;
  --restarts.count, ++restarts.disruptions;
  restarts.forgiven = std::min(restarts.forgiven, restarts.count);
  restarts.streak = std::max(restarts.streak - 1, 0);
  restarts.not_before.reset();
  cause->reason = "NodeLost";
  cause->message = fmt::format("node {} turned not ready right after: {}", cause->node, cause->message);
  if (!restarts.causes.empty()) restarts.causes.back() = *cause;
  return plan;
}

}  // namespace trainyard::decide
