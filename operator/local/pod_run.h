#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/pod.h"
#include "local/containers/container.h"
#include "local/pod_context.h"
#include "local/volumes/volumes.h"

namespace trainyard::local {

/// What this machine adds to a pod's own environment and where the run's files are.
struct PodPlace {
  std::filesystem::path run_folder;
  Variables variables;  ///< HOSTNAME and the like; the container's own win
  size_t colour = 0;
  Console& console;
};

/// A pod as a kubelet runs it: init containers one after another, then the containers together; restarts in place as
/// its restartPolicy says; SIGTERM, the grace time and SIGKILL when it is deleted. An init container of restartPolicy
/// Always, a sidecar, lives beside the others and is asked to end once they have, the last one first. Its containers
/// are processes.
/// One thread, which also waits for the processes and tells of their ends.
class PodRun {
 public:
  /// Makes volumes and all that starting takes, but starts nothing. Throws Refusal for what cannot be done here.
  PodRun(Json object, const PodContext& context, const PodPlace& place, TimePoint now);

  void start(TimePoint now) { go_on(now); }
  /// The container whose process this is; null where it is none of this pod's.
  [[nodiscard]] Container* container_of(pid_t pid);
  /// The code that its container has ended with, which may run again already.
  int on_end(Container& container, int status, TimePoint now);
  /// False where the process that has ended is none of its containers' startupProbes'.
  bool on_probe_end(pid_t pid, int status, TimePoint now);
  /// Restarts and kills that are due.
  void on_time(TimePoint now);
  void remove(std::chrono::seconds grace, TimePoint now);
  void kill();

  [[nodiscard]] std::optional<TimePoint> next_time() const;
  /// The pod as the API would show it.
  [[nodiscard]] const api::Pod& seen() const { return pod_; }
  [[nodiscard]] bool is_alive() const;  ///< a process of it is there, or will be
  [[nodiscard]] bool is_gone() const { return pod_.deleted && !is_alive(); }
  [[nodiscard]] std::list<Container>& containers() { return containers_; }
  [[nodiscard]] std::chrono::seconds grace() const { return std::chrono::seconds(pod_.grace_seconds); }

 private:
  void add(const Json& container, bool is_init, const PodContext& context, const PodPlace& place);
  void go_on(TimePoint now);
  const Container* start_what_may(TimePoint now);
  const Container* stop_sidecars(TimePoint now);
  void tell_of(const Container* awaited, TimePoint now);
  void update();
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] std::string phase() const;
  [[nodiscard]] bool may_restart(const Container& container) const;

  Json object_;
  api::Pod pod_;
  Volumes volumes_;
  std::list<Container> containers_;  ///< init containers first
  std::optional<TimePoint> kill_at_;
  Console& console_;
  const Container* awaited_ = nullptr;
  TimePoint awaited_since_;
  bool is_told_ = false;
};

/// The command that a container stands for here. Throws Refusal where only its image would know.
[[nodiscard]] std::vector<std::string> command_of(const Json& container, const Variables& variables,
                                                  const PodContext& context);

}  // namespace trainyard::local
