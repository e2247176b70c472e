#include "decide/rules/recover.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "decide/conditions.h"
#include "decide/rules/failures.h"

namespace trainyard::decide {
namespace {

constexpr int kRefused = 2;  // the exit code of what a restart would repeat (docs/interfaces.md)
/// No job has so many restarts: a number beyond is no generation of ours, and one more could not be counted.
constexpr int64_t kMostGenerations = int64_t{1} << 53;

/// The generation that a message names: of "DIR: generation 5 of this job has written here, this is generation 1; …"
/// (docs/interfaces.md): 5.
std::optional<int64_t> generation_in(const std::string& message) {
  constexpr std::string_view kBefore = "generation ", kAfter = " of this job has written here, this is generation ";
  const size_t end = message.find(kAfter);
  if (end == std::string::npos) return std::nullopt;
  const size_t begin = message.rfind(kBefore, end);
  if (begin == std::string::npos) return std::nullopt;
  return parse_int(std::string_view(message).substr(begin + kBefore.size(), end - begin - kBefore.size()));
}

}  // namespace

Plan recovered_generation(const Draft& draft) {
  if (is_finished(draft.status)) return {};
  const int64_t generation = draft.status.restarts.generation;
  int64_t newest = generation;
  for (const api::Pod* pod : draft.seen.pods)
    if (const int64_t of_pod = pod->generation.value_or(1); of_pod < kMostGenerations)
      newest = std::max(newest, of_pod);
  if (newest == generation) return {};
  Plan plan = draft.with_status();
  plan.status->restarts.generation = newest;
  plan.say(true, "StatusLost",
           fmt::format("the status said generation {}, and pods are of generation {}: the job goes on as that; what "
                       "the status had counted before is lost",
                       generation, newest));
  return plan;
}

std::optional<Refusal> refusal_of(const Draft& draft) {
  for (const Replica& replica : draft.gang.replicas) {
    if (!replica.pod || !is_current(*replica.pod, draft.status) || !has_failed(*replica.pod)) continue;
    api::RestartCause cause = cause_of_failure(*replica.pod, draft.now);
    const api::ContainerStatus* const ended = ended_container(*replica.pod);
    const auto newer = ended && ended->exit_code == kRefused ? generation_in(cause.message) : std::nullopt;
    if (!newer || *newer <= draft.status.restarts.generation || *newer >= kMostGenerations) continue;
    cause.reason = "StatusLost";
    return Refusal{*newer, std::move(cause)};
  }
  return std::nullopt;
}

}  // namespace trainyard::decide
