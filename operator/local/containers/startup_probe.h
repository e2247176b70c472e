#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/time.h"
#include "local/containers/probe_question.h"
#include "local/containers/process.h"

namespace trainyard::local {

/// A container's startupProbe: asked from the container's start on until it succeeds once, or has failed too often.
/// Each try is a process of its own. One thread, which also waits for the processes and tells of their ends.
class StartupProbe {
 public:
  /// `probe` as the container has it. Throws Refusal for a probe that takes a cluster.
  StartupProbe(const Json& probe, const Json& container);
  ~StartupProbe() { stop(); }
  StartupProbe(const StartupProbe&) = delete;
  StartupProbe& operator=(const StartupProbe&) = delete;

  /// The container has started as this process.
  void begin(pid_t container, TimePoint now);
  /// The container has ended.
  void stop();
  /// Begins a try that is due and gives one up that takes too long. `program`: the container's.
  void on_time(const Program& program, TimePoint now);
  /// False where the process is no try of this probe.
  bool on_end(pid_t pid, int status);

  [[nodiscard]] bool has_succeeded() const { return has_succeeded_; }
  /// It has succeeded by a redirect that was not followed.
  [[nodiscard]] bool is_redirected() const { return is_redirected_; }
  [[nodiscard]] bool has_failed() const { return failures_ >= threshold_; }
  [[nodiscard]] std::optional<TimePoint> next_time() const;
  [[nodiscard]] pid_t pid() const { return pid_; }  ///< of the try that is under way; 0: none is

 private:
  void ask(const Program& program);
  void end_try();

  std::vector<std::string> command_;  ///< exec; empty: `question_`
  Question question_;                 ///< answered in a process of its own
  std::chrono::seconds delay_, period_, timeout_;
  int threshold_ = 3, failures_ = 0;
  bool has_succeeded_ = false, is_redirected_ = false;
  std::optional<TimePoint> next_try_;
  TimePoint give_up_at_;
  pid_t container_ = 0, pid_ = 0;
};

}  // namespace trainyard::local
