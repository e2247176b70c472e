#include "decide/progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "api/annotations.h"
#include "base/text.h"
#include "decide/calendar.h"
#include "decide/conditions.h"
#include "decide/names.h"

namespace trainyard::decide {
namespace {

using namespace std::chrono_literals;

constexpr auto kWriteInterval = 10s;

std::optional<std::chrono::seconds> deadline_of(const api::Job& job) {
  const auto seconds = parse_int(annotation_of(job, api::kProgressDeadlineAnnotation));
  return seconds && *seconds > 0 ? std::optional(bounded(std::chrono::seconds(*seconds))) : std::nullopt;
}

std::string silent_text(const std::vector<int>& ranks) {
  if (ranks.empty()) return "";
  return fmt::format("; silent: {} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

/// As kubectl writes an age: "94s", "2m52s", "1h25m".
std::string short_duration(std::chrono::seconds duration) {
  using namespace std::chrono;
  if (duration < 2min) return fmt::format("{}s", duration.count());
  if (duration < 2h) return fmt::format("{}m{}s", floor<minutes>(duration).count(), (duration % 1min).count());
  return fmt::format("{}h{}m", floor<hours>(duration).count(), floor<minutes>(duration % 1h).count());
}

/// How long the rest takes at the speed since the last report that was written; "" where that tells nothing: the first
/// report, and one of a gang that went back to a checkpoint.
std::string eta_of(const api::Progress& now, const std::optional<api::Progress>& before) {
  if (!before || now.step <= before->step || now.step >= now.total_steps || now.updated <= before->updated) return "";
  const double seconds = std::chrono::duration<double>(now.updated - before->updated).count() /
                         static_cast<double>(now.step - before->step) * static_cast<double>(now.total_steps - now.step);
  constexpr double kYear = 365.0 * 86400;  // what takes longer is not known
  return seconds < kYear ? short_duration(std::chrono::seconds(std::llround(seconds))) : "";
}

/// As many digits as logs print: a table is made of it.
double rounded(double loss) {
  return std::abs(loss) < 1e6 ? std::round(loss * 1e5) / 1e5 : loss;
}

}  // namespace

void take_progress(Draft& draft) {
  const auto& told = draft.seen.progress;
  if (!told) return;
  const auto& written = draft.status.progress;
  if (written && told->updated <= written->updated) return;
  const bool is_newer_life = !written || told->checkpoint_step != written->checkpoint_step;
  if (!is_newer_life && draft.now < written->updated + kWriteInterval)
    return draft.look_again_at(written->updated + kWriteInterval);
  api::Progress now = *told;
  now.eta = eta_of(now, written);
  now.loss = rounded(now.loss);
  draft.status.progress = std::move(now);
}

std::optional<api::RestartCause> stall(Draft& draft) {
  const auto deadline = deadline_of(draft.job());
  const api::Condition* const running = find_condition(draft.status, condition::kRunning);
  if (!deadline || !running || !running->status) return std::nullopt;
  const auto& progress = draft.seen.progress ? draft.seen.progress : draft.status.progress;
  const TimePoint since = std::max(running->transitioned, progress ? progress->advanced : TimePoint());
  if (draft.now < since + *deadline) {
    draft.look_again_at(since + *deadline);
    return std::nullopt;
  }
  const auto silent = progress ? progress->silent_ranks : std::vector<int>();
  const std::string message =
      fmt::format("no progress for {}{}", human_duration(std::chrono::floor<std::chrono::seconds>(draft.now - since)),
                  silent_text(silent));
  const Replica& first = draft.gang.replicas.front();
  return api::RestartCause{first.name, first.pod ? first.pod->node : "", std::nullopt, "Stalled", message, draft.now};
}

}  // namespace trainyard::decide
