#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/job_token.h"
#include "controller/cluster.h"
#include "controller/counters.h"
#include "controller/memory.h"
#include "kube/event_recorder.h"

namespace trainyard::controller {

/// Whoever carries plans out. Borrowed; outlive every execution.
struct Hands {
  kube::Client& client;
  Cluster& cluster;
  kube::EventRecorder& events;
  Counters& counters;
  const OperatorKey& key;
  decide::GangScheduler gang_scheduler;
  const Cluster::OnTrouble& on_trouble;
};

/// Names that something else has are not watched: they are looked for so often, sooner where one is about to be free.
[[nodiscard]] std::chrono::seconds foreign_interval(const Memory& memory);

enum class Outcome {
  Done,
  Stale,   ///< more is known now than was decided by: to be looked at again at once
  Failed,  ///< something was refused or its fate is unknown: to be looked at again after a rest
};

/// Carries out one plan: the status first, guarded, then events, what pods refer to, and the rest all at once. Whatever
/// the API answers goes into the cluster's state, and where no answer came the object is read back, so that the next
/// decision sees what is. Lives until `done` was called, once.
class Execution : public std::enable_shared_from_this<Execution> {
 public:
  using OnDone = std::function<void(Outcome)>;

  Execution(Hands hands, std::shared_ptr<const WatchedJob> job, std::shared_ptr<Memory> memory, decide::Plan plan,
            OnDone done);
  void start();

 private:
  void write_status();
  void on_status(const kube::Result<Json>& reply);
  void status_refused(const kube::ApiError& error);
  [[nodiscard]] bool is_status_kept(const Json& job);
  void say_all();
  void run_prepare();
  void run_writes();
  void begin(size_t count, std::function<void()> next);
  void finish_one();

  void create(const decide::Create& wanted);
  void on_created(const decide::Create& wanted, const kube::Result<Json>& reply);
  void on_made(const decide::Create& wanted, const Json& object);
  void on_refused(const decide::Create& wanted, const kube::ApiError& error);
  void look_who_has(const decide::Create& wanted, kube::ErrorKind error);
  void look_for_foreign(decide::Kind kind, const std::string& name);
  [[nodiscard]] std::vector<std::string> due_inquiries(std::chrono::steady_clock::time_point now);
  void look_for_warnings(const std::string& uid);
  void patch(const decide::Patch& wanted);
  void remove(const decide::Delete& wanted);
  void on_removed(const decide::Delete& wanted, const kube::Result<Json>& reply);
  void read_back(decide::Kind kind, const std::string& name, const std::string& uid);

  void say(bool is_warning, const std::string& reason, const std::string& message, const std::string& once = "");
  [[nodiscard]] std::string path(decide::Kind kind, const std::string& name = "", const char* subresource = "") const;

  Hands hands_;
  std::shared_ptr<const WatchedJob> job_;
  std::shared_ptr<Memory> memory_;
  decide::Plan plan_;
  OnDone done_;
  bool has_failed_ = false, has_news_ = false, is_status_cut_ = false;
  size_t pending_ = 0;
  std::function<void()> next_;
};

}  // namespace trainyard::controller
