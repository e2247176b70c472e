#include "decide/calendar.h"

#include "decide/back_off.h"

namespace trainyard::decide {
namespace {

// Calendars of two machines differ by so much without anything being wrong.
constexpr auto kUsualSkew = std::chrono::seconds(5);

}  // namespace

api::JobStatus with_mended_times(api::JobStatus status, TimePoint now) {
  const TimePoint latest = now + kUsualSkew;
  const auto mend = [&](TimePoint& time) {
    if (time > latest) time = now;
  };
  if (status.start_time) mend(*status.start_time);
  if (status.completion_time) mend(*status.completion_time);
  for (api::Condition& condition : status.conditions) {
    mend(condition.updated);
    mend(condition.transitioned);
  }
  if (status.progress) {
    mend(status.progress->updated);
    mend(status.progress->advanced);
  }
  api::Restarts& restarts = status.restarts;
  if (restarts.running_since) mend(*restarts.running_since);
  if (restarts.not_before && *restarts.not_before > latest + longest_wait(restarts.streak)) restarts.not_before.reset();
  return status;
}

}  // namespace trainyard::decide
