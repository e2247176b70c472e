#include "launch/gang.h"

#include <algorithm>
#include <csignal>

#include "base/error.h"

namespace trainyard::launch {
namespace {

using namespace std::chrono_literals;

constexpr int kTerminated = static_cast<int>(ExitCode::Terminated);
constexpr int kPeerLost = static_cast<int>(ExitCode::PeerLost);
constexpr std::chrono::milliseconds kFailingPatience = 4s;  // all must be over 5 s after the first failure

bool is_follow_up(const Ending& ending) {
  return ending.code == kPeerLost || ending.code == kTerminated;
}

/// Whether the rank ended by its own fault, though whoever lost it was quicker to end: its code is its own, and no
/// signal of ours killed it.
bool is_cause(const Ending& ending, Gang::Phase phase) {
  return !is_follow_up(ending) && (ending.signal != SIGKILL || phase == Gang::Phase::Failing);
}

}  // namespace

bool is_worth_restarting(const Ending& failure, bool is_trainyard) {
  if (!is_trainyard || failure.signal != 0) return true;
  return failure.code != static_cast<int>(ExitCode::Input) && failure.code != static_cast<int>(ExitCode::NotFinite) &&
         failure.code != static_cast<int>(ExitCode::DeviceFault);
}

Gang::Gang(int ranks, std::chrono::milliseconds grace) : grace_(grace), remaining_(ranks) {}

Gang::Action Gang::ended(std::vector<Ending> endings, TimePoint now) {
  std::ranges::stable_sort(endings, {}, is_follow_up);
  remaining_ -= static_cast<int>(endings.size());
  Action action = Action::None;
  for (const Ending& ending : endings) {
    const Action next = judge(ending, now);
    if (next != Action::None) action = next;
  }
  return remaining_ == 0 ? Action::None : action;
}

Gang::Action Gang::judge(const Ending& ending, TimePoint now) {
  if (ending.code == 0) return Action::None;
  if (code_when_asked_ == 0 || ending.code == kTerminated) code_when_asked_ = ending.code;
  if (first_failure_ && first_failure_->code == kPeerLost && is_cause(ending, phase_)) first_failure_ = ending;
  if (phase_ == Phase::Failing || phase_ == Phase::Killed) return Action::None;  // it was ended by us
  if (ending.code == kTerminated && ending.signal == 0) {
    is_asked_ = true;
    return phase_ == Phase::Running ? begin(Phase::Stopping, grace_, now) : Action::None;
  }
  // Once all are asked to stop, one that doesn't handle the signal, or misses who was faster, has not failed.
  if (phase_ == Phase::Stopping && (ending.signal != 0 || is_follow_up(ending))) return Action::None;
  if (!first_failure_) first_failure_ = ending;
  return begin(Phase::Failing, std::min(grace_, kFailingPatience), now);
}

Gang::Action Gang::asked_to_stop(TimePoint now) {
  is_asked_ = true;
  if (phase_ == Phase::Running) return begin(Phase::Stopping, grace_, now);
  if (phase_ == Phase::Killed) return Action::None;
  return begin(Phase::Killed, 0ms, now);  // asked twice: somebody does not want to wait
}

Gang::Action Gang::at(TimePoint now) {
  if (is_over() || !deadline() || now < deadline_) return Action::None;
  return begin(Phase::Killed, 0ms, now);
}

Gang::Action Gang::begin(Phase phase, std::chrono::milliseconds patience, TimePoint now) {
  phase_ = phase;
  deadline_ = now + patience;
  return phase == Phase::Killed ? Action::Kill : Action::Terminate;
}

std::optional<Gang::TimePoint> Gang::deadline() const {
  return phase_ == Phase::Stopping || phase_ == Phase::Failing ? std::optional(deadline_) : std::nullopt;
}

int Gang::exit_code() const {
  return first_failure_ ? first_failure_->code : code_when_asked_;
}

}  // namespace trainyard::launch
