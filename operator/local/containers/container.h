#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "api/pod.h"
#include "base/time.h"
#include "common/unique_fd.h"
#include "local/console.h"
#include "local/containers/process.h"
#include "local/containers/startup_probe.h"
#include "local/volumes/volumes.h"

namespace trainyard::local {

/// What stays the same over a container's restarts.
struct ContainerSettings {
  std::string name;   ///< of the container
  std::string label;  ///< of its lines and its log: the pod's name, with several containers "pod/container"
  bool is_init = false;
  bool is_sidecar = false;      ///< an init container that lives beside the others: restartPolicy Always
  bool says_last_line = false;  ///< terminationMessagePolicy FallbackToLogsOnError
  size_t colour = 0;
  Program program;            ///< but its root, which is made as it starts
  std::vector<Mount> mounts;  ///< of that root
  std::unique_ptr<StartupProbe> probe;  ///< of a sidecar; null: none
  std::chrono::seconds grace{30};  ///< when the probe has failed
  std::filesystem::path log;               ///< its lines without prefix; the run's before lies beside it as .previous
  std::string mark;                        ///< in the environment of all that it starts
  std::filesystem::path termination_file;  ///< where it says why it ends
};

/// One container as its process, over restarts. Waiting → Running → Terminated, and Running again by start().
class Container {
 public:
  Container(ContainerSettings settings, Console& console) : settings_(std::move(settings)), console_(console) {}
  ~Container();
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;

  /// Throws Refusal, naming it, where it cannot be started.
  void start(TimePoint now);
  /// Its process has ended, `status` as waitpid() gives it.
  void end(int status, TimePoint now);
  /// Its startupProbe asks, and ends it where it has failed too often.
  void on_time(TimePoint now);
  /// False where the process that has ended is no try of its startupProbe.
  bool on_probe_end(pid_t pid, int status);
  /// SIGTERM, once.
  void ask_to_end();
  /// Prints what there is to read; no longer asks for more once all that hold the stream are gone.
  void read_output();

  [[nodiscard]] bool is_running() const { return state_.state == api::ContainerState::Running; }
  [[nodiscard]] bool has_ended() const { return state_.state == api::ContainerState::Terminated; }
  [[nodiscard]] bool has_failed() const { return has_ended() && state_.exit_code != 0; }
  [[nodiscard]] const api::ContainerStatus& status() const { return state_; }
  [[nodiscard]] const std::string& name() const { return settings_.name; }
  [[nodiscard]] const std::string& label() const { return settings_.label; }
  [[nodiscard]] bool is_init() const { return settings_.is_init; }
  [[nodiscard]] bool is_sidecar() const { return settings_.is_sidecar; }
  /// Whether what comes after it may start: an init container has succeeded; a sidecar has run once, and its
  /// startupProbe, where it has one, has succeeded.
  [[nodiscard]] bool lets_go_on() const;
  /// What it does while others wait for it, for people.
  [[nodiscard]] std::string doing(TimePoint now) const;
  [[nodiscard]] std::optional<TimePoint> next_time() const;
  [[nodiscard]] const std::string& mark() const { return settings_.mark; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] pid_t probe_pid() const { return settings_.probe ? settings_.probe->pid() : 0; }  ///< 0: none
  [[nodiscard]] int output() const { return output_.get(); }  ///< -1: none
  /// Signals it and all it has started. True as long as any of them is there.
  bool signal(int number) const;

  // The back-off of a kubelet that restarts it in place.
  /// When it may start again, having just ended: the first time at once, then after 10 s doubling to 5 min, from the
  /// start again after 10 min of running.
  void plan_restart(TimePoint now);
  [[nodiscard]] std::optional<TimePoint> restart_at() const { return restart_at_; }
  void call_off_restart() { restart_at_.reset(); }

 private:
  void print(std::string_view line);
  void close_output();
  void rotate_log() const;
  [[nodiscard]] std::string termination_message() const;

  ContainerSettings settings_;
  Console& console_;
  api::ContainerStatus state_{};
  pid_t pid_ = 0;
  UniqueFd output_, log_;
  Lines lines_;
  std::string last_line_;
  TimePoint started_;
  std::chrono::seconds back_off_{0};
  std::optional<TimePoint> restart_at_, kill_at_;
  bool has_started_ = false;  ///< a sidecar, once
  bool is_asked_to_end_ = false;
};

}  // namespace trainyard::local
