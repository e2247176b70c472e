#include "decide/rules/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "decide/conditions.h"
#include "decide/rules/gang.h"
#include "decide/rules/limits.h"

namespace trainyard::decide {
namespace {

using namespace std::chrono_literals;

constexpr auto kWriteInterval = 10s;
constexpr std::chrono::duration<double> kStandsStill = 60s;  // or five steps, where those take longer
constexpr double kStepsThatAreMissed = 5;

/// The duration as kubectl writes an age: "94s", "2m52s", "1h25m".
std::string short_duration(std::chrono::seconds duration) {
  using namespace std::chrono;
  if (duration < 2min) return fmt::format("{}s", duration.count());
  if (duration < 2h) return fmt::format("{}m{}s", floor<minutes>(duration).count(), (duration % 1min).count());
  return fmt::format("{}h{}m", floor<hours>(duration).count(), floor<minutes>(duration % 1h).count());
}

/// How long the rest takes at the speed since the last report that was written; "" where that tells nothing: the first
/// report, and one of a gang that went back to a checkpoint.
std::string eta_of(const api::Progress& now, const std::optional<api::Progress>& before) {
  if (!before || now.step < before->step || now.step >= now.total_steps) return "";
  if (now.step == before->step) return before->eta;
  if (now.updated <= before->updated) return "";
  const double seconds = std::chrono::duration<double>(now.updated - before->updated).count() /
                         static_cast<double>(now.step - before->step) * static_cast<double>(now.total_steps - now.step);
  constexpr double kYear = 365.0 * 86400;  // what takes longer is not known
  return seconds < kYear ? short_duration(std::chrono::seconds(std::llround(seconds))) : "";
}

/// The loss with as many digits as logs print: a table is made of it.
std::optional<double> rounded(const std::optional<double>& loss) {
  return loss && std::abs(*loss) < 1e6 ? std::round(*loss * 1e5) / 1e5 : loss;
}

/// What is not to wait for its turn.
bool has_news(const api::Progress& now, const api::Progress& before) {
  return now.checkpoint_step != before.checkpoint_step || now.checkpoint_error != before.checkpoint_error ||
         now.metrics_error != before.metrics_error || now.config_changed != before.config_changed ||
         now.silent_ranks != before.silent_ranks;
}

/// A post as it is written after what was written `before`.
api::Progress written_after(const std::optional<api::Progress>& before, api::Progress now) {
  now.eta = eta_of(now, before);
  now.loss = rounded(now.loss);
  return now;
}

void forget_speed(api::Progress& progress) {
  progress.eta.clear();
  progress.tokens_per_second.reset();
}

/// A gang that stands still has no speed; nor is anything known of one that posts nothing any more.
void forget_old_speed(Plan& plan, const Draft& draft) {
  auto& written = plan.status->progress;
  if (!written || (written->eta.empty() && !written->tokens_per_second)) return;
  const api::ProgressPost* const post = heard_post(draft);
  const auto patience = std::max(kStandsStill, std::chrono::duration<double>(
                                                   kStepsThatAreMissed * (post ? post->seconds_a_step : 0)));
  const TimePoint end = std::max(written->advanced, post ? post->progress.advanced : TimePoint()) +
                        std::chrono::ceil<std::chrono::seconds>(std::min(patience, std::chrono::duration<double>(1h)));
  if (draft.now >= end) return forget_speed(*written);
  plan.look_again_at(end);
}

/// The termination message of the pod that rank 0 ran in, where it is a post.
std::optional<api::Progress> last_words(const Draft& draft) {
  if (draft.gang.replicas.empty()) return std::nullopt;
  const api::Pod* const pod = draft.gang.replicas.front().pod;
  const api::ContainerStatus* const ended = pod && has_succeeded(*pod) ? ended_container(*pod) : nullptr;
  auto words = ended ? api::progress_of_text(ended->message) : std::nullopt;
  if (!words) return std::nullopt;
  words->updated = words->advanced = ended->ended.value_or(draft.now);
  return words;
}

/// The text has no number of steps, which changes with every look.
std::string since_checkpoint(const api::Progress& progress) {
  return fmt::format("if the job ends now, all steps since {} are lost",
                     progress.checkpoint_step < 0 ? "its start" : fmt::format("step {}", progress.checkpoint_step));
}

/// The deadline is set, and nothing has come that it could count from.
Timely<ProgressTrouble> unheard(const Draft& draft) {
  const auto deadline = progress_deadline_of(draft.job());
  const auto& running_since = draft.status.restarts.running_since;
  if (!deadline || !running_since || draft.scope != RestartScope::Gang || heard_post(draft)) return {};
  const TimePoint since = std::max(*running_since, draft.seen.listens_since);
  if (draft.now < since + *deadline) return {.look_again = since + *deadline};
  return {ProgressTrouble{
      "NoProgressPosted",
      fmt::format("all pods run, and rank 0 has posted no progress since {}: the progress deadline counts from its "
                  "first post on; if the log of rank 0 says that posts fail, mend that, and if its program does not "
                  "post, remove the annotation",
                  format_time(since))}};
}

}  // namespace

const api::ProgressPost* heard_post(const Draft& draft) {
  const auto& post = draft.seen.post;
  const bool is_heard = post && post->generation.value_or(1) == draft.status.restarts.generation &&
                        post->progress.updated != TimePoint() && post->progress.updated >= draft.seen.listens_since;
  return is_heard ? &*post : nullptr;
}

Plan posted_progress(const Draft& draft) {
  Plan plan = draft.with_status();
  const api::ProgressPost* const post = heard_post(draft);
  auto& written = plan.status->progress;
  if (post && post->refusal.empty() && (!written || post->progress.updated > written->updated)) {
    const api::Progress& told = post->progress;
    const bool is_new = !written || has_news(told, *written);
    if (!is_new && told.step == written->step) {
      // It stands where it stood: nothing to write.
    } else if (!is_new && draft.now < written->updated + kWriteInterval) {
      plan.look_again_at(written->updated + kWriteInterval);
    } else {
      written = written_after(written, told);
    }
  }
  forget_old_speed(plan, draft);
  return plan;
}

std::optional<api::Progress> without_generation(std::optional<api::Progress> progress) {
  if (!progress) return progress;
  progress->silent_ranks.clear();
  progress->checkpoint_error.clear();
  progress->metrics_error.clear();
  progress->config_changed.clear();
  forget_speed(*progress);
  return progress;
}

std::optional<api::Progress> final_progress(const Draft& draft) {
  auto progress = draft.status.progress;
  const api::ProgressPost* const post = heard_post(draft);
  if (post && (!progress || post->progress.updated > progress->updated))
    progress = written_after(progress, post->progress);
  if (auto words = last_words(draft); words && (!progress || words->step >= progress->step)) {
    const bool is_known = progress && words->step == progress->step && rounded(words->loss) == progress->loss;
    if (!is_known) progress = written_after(progress, std::move(*words));
  }
  if (!progress) return progress;
  progress->eta.clear();
  progress->silent_ranks.clear();
  progress->config_changed.clear();  // no start comes that would take it
  return progress;
}

Timely<ProgressTrouble> progress_trouble(const Draft& draft) {
  if (const auto& progress = draft.status.progress) {
    if (!progress->checkpoint_error.empty())
      return {ProgressTrouble{"CheckpointFailing", fmt::format("the latest checkpoint could not be saved: {}; {}",
                                                               progress->checkpoint_error,
                                                               since_checkpoint(*progress))}};
    if (!progress->metrics_error.empty())
      return {ProgressTrouble{"MetricsFailing", fmt::format("{}; training goes on", progress->metrics_error)}};
  }
  if (const api::ProgressPost* const post = heard_post(draft); post && !post->refusal.empty())
    return {ProgressTrouble{"ProgressRefused",
                            fmt::format("what rank 0 posts of its progress cannot be taken: {}; until it can, the "
                                        "progress deadline does not count",
                                        post->refusal)}};
  return unheard(draft);
}

}  // namespace trainyard::decide
