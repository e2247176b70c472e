#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace trainyard::launch {

/// How a rank's process ended.
struct Ending {
  int rank = 0;    ///< local
  int code = 0;    ///< exit code; 128 + signal where one killed it
  int signal = 0;  ///< that killed it; 0: it exited
};

/// Whether starting the ranks anew can help after this one failed: not where it would fail again (docs/interfaces.md),
/// or on a device at fault. Of other programs nobody knows.
bool is_worth_restarting(const Ending& failure, bool is_trainyard);

/// The policy of a node's ranks, without processes or a clock: what happens to the others when one ends, or when the
/// launcher is asked to stop. Events and the time come in; what to send to all remaining ranks comes out.
class Gang {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  enum class Phase {
    Running,   ///< nobody has failed
    Stopping,  ///< SIGTERM or SIGINT came, or a rank ended with 143, which says that all do: they have the grace to
               ///< save
    Failing,   ///< a rank failed: the others are asked to end, and have not long
    Killed,    ///< their time was over
  };
  enum class Action { None, Terminate, Kill };

  Gang(int ranks, std::chrono::milliseconds grace);

  /// Endings that were seen together: of these, losing a peer is no first failure where another failed by itself.
  Action ended(std::vector<Ending> endings, TimePoint now);
  Action asked_to_stop(TimePoint now);
  Action at(TimePoint now);

  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] bool is_over() const { return remaining_ == 0; }
  [[nodiscard]] std::optional<TimePoint> deadline() const;
  /// The rank that failed first, where one did; rather than one that only lost its peer, one that failed by itself.
  [[nodiscard]] const std::optional<Ending>& first_failure() const { return first_failure_; }
  /// Somebody wants the end: no failure, and nothing to start again after.
  [[nodiscard]] bool is_asked() const { return is_asked_; }
  /// The exit code of the launcher, once all is over.
  [[nodiscard]] int exit_code() const;

 private:
  Action begin(Phase phase, std::chrono::milliseconds patience, TimePoint now);
  Action judge(const Ending& ending, TimePoint now);

  std::chrono::milliseconds grace_;
  Phase phase_ = Phase::Running;
  TimePoint deadline_{};
  int remaining_;
  bool is_asked_ = false;  ///< by a signal to the launcher, or by a rank's 143
  /// 143 where a rank ended so, as all had saved then; else of the first that did not succeed.
  int code_when_asked_ = 0;
  std::optional<Ending> first_failure_;
};

}  // namespace trainyard::launch
