#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "controller/execution.h"
#include "controller/work_queue.h"
#include "kube/alive.h"

namespace trainyard::controller {

/// Observe, decide, act: for each job whose turn it is. One thread, the client's loop; no two plans of one job are
/// under way at once.
class Reconciler {
 public:
  struct Settings {
    decide::Settings decisions;
    std::string ns;  ///< "": all
  };

  /// Who else wants to know: of each change of a job (either may be null), and what the API refuses of the watches.
  struct Hooks {
    std::function<void(const WatchedJob* before, const WatchedJob* after)> on_job;
    Cluster::OnTrouble on_trouble;
  };

  /// `key` may change until lead().
  Reconciler(kube::Client& client, kube::EventRecorder& events, Counters& counters, const OperatorKey& key,
             Settings settings, Hooks hooks);
  Reconciler(const Reconciler&) = delete;
  Reconciler& operator=(const Reconciler&) = delete;

  /// Begins to watch. Decisions wait for lead().
  void start();
  /// This process decides from now on, or until yield().
  void lead();
  void yield();

  /// What rank 0 of a job's present generation posts of its training.
  void take_post(const std::string& key, const api::ProgressPost& post);
  /// Posts that came before now say nothing of whether posts can come: the key or the authority has changed.
  void listen_anew() { listens_since_ = std::chrono::system_clock::now(); }

  [[nodiscard]] Cluster& cluster() { return cluster_; }
  [[nodiscard]] const Cluster& cluster() const { return cluster_; }
  [[nodiscard]] size_t queued() const { return queue_.waiting(); }
  [[nodiscard]] decide::Settings& decisions() { return settings_.decisions; }

 private:
  void job_changed(const std::shared_ptr<const WatchedJob>& before, const std::shared_ptr<const WatchedJob>& after);
  void add(const std::string& key);
  void pump();
  void schedule_pump();
  void reconcile(const std::string& key);
  void finish(const std::string& key, const std::shared_ptr<Memory>& memory, Outcome outcome,
              std::chrono::steady_clock::duration decided_in);
  [[nodiscard]] Stage::Later later() const;
  std::shared_ptr<Memory> memory_of(const std::string& key, const std::string& uid);

  kube::Client& client_;
  kube::EventRecorder& events_;
  Counters& counters_;
  const OperatorKey& key_;
  Settings settings_;
  Hooks hooks_;
  Cluster cluster_;
  WorkQueue queue_;
  std::unordered_map<std::string, std::shared_ptr<Memory>> memories_;
  bool is_leading_ = false, will_pump_ = false;
  TimePoint listens_since_;  ///< where jobs can post to
  kube::EventLoop::TimerId timer_ = kube::EventLoop::TimerId::None;
  kube::Alive alive_;  ///< last: what is under way ends first
};

}  // namespace trainyard::controller
