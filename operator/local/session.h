#pragma once

#include <list>
#include <optional>
#include <set>

#include "local/containers/signals.h"
#include "local/job_run.h"

namespace trainyard::local {

/// The loop over all jobs of a run: waits for output, ends of processes, signals and due times, and lets the jobs act.
/// One thread. When it is left, by whatever way, none of the containers' processes is left.
class Session {
 public:
  /// Signals are blocked by then: `inbox` has a thread.
  Session(std::list<JobRun>& jobs, ProgressInbox& inbox, Signals& signals, Console& console);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Runs until all jobs are done. It returns the signal that ended it, none where it was none.
  std::optional<int> run();
  /// It stops all in order: SIGTERM, grace, SIGKILL.
  void stop_all();

 private:
  struct Owner {
    JobRun& job;
    PodRun& pod;
    Container& container;
  };

  void turn();
  void wait_for_something();
  void take_signals();
  void on_signal(int number);
  void reap();
  void end_strays() const;
  [[nodiscard]] std::optional<Owner> owner_of(pid_t pid);
  void on_probe_end(pid_t pid, int status);
  [[nodiscard]] bool are_all_done() const;

  std::list<JobRun>& jobs_;
  ProgressInbox& inbox_;
  Signals& signals_;
  Console& console_;
  std::optional<int> signal_;  ///< that asked for the end
  bool is_stopping_ = false;
};

}  // namespace trainyard::local
