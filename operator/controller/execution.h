#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/job_token.h"
#include "controller/cluster.h"
#include "controller/counters.h"
#include "controller/kept_status.h"
#include "controller/memory.h"
#include "controller/stage.h"
#include "kube/event_recorder.h"

namespace trainyard::controller {

/// Whoever carries plans out. What is borrowed here must live as long as an execution acts: `later` drops what an
/// execution still wants to do once its owner has ended.
struct Hands {
  kube::Client& client;
  Cluster& cluster;
  kube::EventRecorder& events;
  Counters& counters;
  const OperatorKey& key;
  decide::GangScheduler gang_scheduler;
  const Cluster::OnTrouble& on_trouble;
  Stage::Later later;
};

/// Names that something else has are not watched: they are looked for so often, sooner where one is about to be free.
[[nodiscard]] std::chrono::seconds foreign_interval(const Memory& memory);

enum class Outcome {
  Done,
  Stale,   ///< more is known now than was decided by: to be looked at again at once
  Failed,  ///< something was refused or its fate is unknown: to be looked at again after a rest
};

/// Carries out one plan in three stages: the status, guarded; then events and what pods refer to; then the rest, all at
/// once. Whatever the API answers goes into the cluster's state, and where no answer came the object is read back, so
/// that the next decision sees what is. Lives until `done` was called, once. Where the client drops a call without an
/// answer, the stage ends all the same and the outcome is Failed.
class Execution : public std::enable_shared_from_this<Execution> {
 public:
  using OnDone = std::function<void(Outcome)>;

  Execution(Hands hands, std::shared_ptr<const WatchedJob> job, std::shared_ptr<Memory> memory, decide::Plan plan,
            OnDone done);
  void start();

 private:
  /// A stage of calls, after which `next` goes on.
  [[nodiscard]] Stage begin(void (Execution::*next)());

  void write_status();
  void on_status(const Stage& stage, const kube::Result<Json>& reply);
  void after_status();
  void end_without_status(const kube::ApiError& error);
  void report(KeptStatus kept);
  void say_all();
  void prepare();
  void after_prepare();
  void write_rest();
  void after_rest();

  void create(const Stage& stage, const decide::Create& wanted);
  void on_created(const Stage& stage, const decide::Create& wanted, const kube::Result<Json>& reply);
  void on_made(const decide::Create& wanted, const Json& object);
  void on_refused(const decide::Create& wanted, const kube::ApiError& error);
  void look_who_has(const Stage& stage, const decide::Create& wanted, kube::ErrorKind error);
  void on_holder(const decide::Create& wanted, const kube::Result<Json>& reply);
  void look_for_foreign(const Stage& stage);
  void on_foreign(decide::Kind kind, const std::string& name, const kube::Result<Json>& reply);
  void look_for_warnings(const Stage& stage);
  void ask_node(const Stage& stage, const std::string& uid);
  void on_warnings(const std::string& uid, const kube::Result<Json>& reply);
  void patch(const Stage& stage, const decide::Patch& wanted);
  void remove(const Stage& stage, const decide::Delete& wanted);
  void on_removed(const Stage& stage, const decide::Delete& wanted, const kube::Result<Json>& reply);
  void read_back(const Stage& stage, decide::Kind kind, const std::string& name, const std::string& uid);

  void say(bool is_warning, const std::string& reason, const std::string& message, const std::string& once = "");
  [[nodiscard]] std::string path(decide::Kind kind, const std::string& name = "", const char* subresource = "") const;

  Hands hands_;
  std::shared_ptr<const WatchedJob> job_;
  std::shared_ptr<Memory> memory_;
  decide::Plan plan_;
  OnDone done_;
  std::optional<kube::ApiError> status_error_;
  bool has_failed_ = false, has_news_ = false, is_status_cut_ = false;
};

}  // namespace trainyard::controller
