#pragma once

#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "decide/conditions.h"
#include "decide/plan.h"
#include "local/containers/gpus.h"
#include "local/pod_run.h"
#include "local/progress_inbox.h"

namespace trainyard::local {

struct JobPlace {
  std::filesystem::path folder;  ///< logs/, volumes/, pods/, status.yaml
  Console& console;
  Gpus& gpus;
  ProgressInbox& inbox;
};

/// One job: what there is of it is handed to decide(), and what that plans is carried out with processes, again and
/// again until it plans nothing more. One thread.
class JobRun {
 public:
  /// `job` with defaults, a uid and free ports.
  JobRun(api::Job job, Input input, decide::Settings settings, JobPlace place);

  /// Does all that is due. Throws Refusal where a pod cannot be had on this machine.
  void step(TimePoint now);
  /// SIGTERM to all of it, SIGKILL after each pod's grace time; nothing is decided any more.
  void stop(TimePoint now);
  void kill();

  [[nodiscard]] bool is_done() const;
  /// When step() is due without anything having happened.
  [[nodiscard]] std::optional<TimePoint> next_time() const;
  /// 0: the job has succeeded; else the code of the container that it failed for, or 1.
  [[nodiscard]] int exit_code() const;
  [[nodiscard]] std::map<std::string, PodRun>& pods() { return pods_; }
  void on_end(PodRun& pod, Container& container, int status, TimePoint now);

 private:
  struct Failure {
    std::string label;
    int code = 1;
  };

  [[nodiscard]] decide::Observed observe() const;
  /// False where the plan changes nothing.
  bool act(const decide::Plan& plan, TimePoint now);
  void set_status(const api::JobStatus& status, const std::vector<decide::EventText>& events);
  void say(const decide::EventText& event);
  void create(const decide::Create& wanted, TimePoint now);
  void create_pod(const decide::Create& wanted, TimePoint now);
  void remove(const decide::Delete& wanted, TimePoint now);
  void prepare_token(const decide::Create& wanted);
  [[nodiscard]] PodPlace place_for(const Json& pod);
  [[nodiscard]] Variables gpu_variables(const Json& pod);
  void write_status() const;
  void forget_gone_pods();
  void end_the_rest(TimePoint now);
  void check_is_going_on() const;
  [[nodiscard]] bool has_finished() const { return decide::is_finished(job_.status); }
  [[nodiscard]] bool is_any_alive() const;

  api::Job job_;
  Input input_;
  decide::Settings settings_;
  JobPlace place_;
  std::map<std::string, PodRun> pods_;
  std::map<std::string, std::vector<std::string>> gpus_of_;
  std::map<std::string, api::Service> services_;
  std::optional<api::ProgressPost> post_;  ///< rank 0's last
  std::optional<api::PodGroup> pod_group_;
  std::optional<api::Autoscaler> autoscaler_;
  bool token_is_there_ = false, network_policy_is_there_ = false;
  bool is_stopping_ = false;             ///< from outside
  std::optional<TimePoint> rest_until_;  ///< the job has finished: when what still runs is stopped
  std::optional<TimePoint> look_again_;
  std::optional<Failure> failure_;          ///< the first of these pods
  std::set<std::string> said_, said_once_;  ///< events: of this generation, of this run
  size_t next_colour_ = 0;
};

}  // namespace trainyard::local
