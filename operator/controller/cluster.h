#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/job.h"
#include "api/pod.h"
#include "controller/owned.h"
#include "decide/plan.h"
#include "kube/client.h"
#include "kube/informer.h"

namespace trainyard::controller {

/// A job as it was read, or why it cannot be.
struct WatchedJob : api::Job {
  std::string defect;
};

/// What the API server has, as far as decisions need it, kept by watches and by the answers to our own writes: so it is
/// never older than what we wrote ourselves. One thread: the client's loop.
class Cluster {
 public:
  struct Settings {
    std::string ns;  ///< "": all namespaces
    decide::GangScheduler gang_scheduler = decide::GangScheduler::None;
    bool watches_nodes = true;
  };
  using OnJob = std::function<void(const std::shared_ptr<const WatchedJob>& before,
                                   const std::shared_ptr<const WatchedJob>& after)>;
  /// A request of a watch failed, for the resource with that name. Each time: it is tried again for ever.
  using OnTrouble = std::function<void(const std::string& resource, const kube::ApiError& error)>;
  using OnChange = std::function<void(const std::string& key)>;

  /// `on_job`: a job itself has changed. `on_change`: something that the job with that key controls has.
  Cluster(kube::Client& client, const Settings& settings, OnJob on_job, OnChange on_change, OnTrouble on_trouble);

  void start();
  [[nodiscard]] bool is_synced() const;
  /// Reads everything anew, as watches may be behind. Until is_current() again nothing is to be decided.
  void refresh();
  [[nodiscard]] bool is_current() const;

  [[nodiscard]] std::shared_ptr<const WatchedJob> job(const std::string& key) const;
  void for_each_job(const std::function<void(const WatchedJob&)>& look) const;
  [[nodiscard]] decide::Observed observe(const WatchedJob& job) const;

  /// An object as the API server answered it.
  void learn(decide::Kind kind, const Json& object);
  /// The object with that uid is no more.
  void forget(decide::Kind kind, const std::string& ns, const std::string& name, const std::string& uid);

  [[nodiscard]] size_t pod_count() const { return pods_.size(); }
  [[nodiscard]] size_t job_count() const { return jobs_.size(); }

 private:
  /// Whether `holds` for the informer of each kind that is watched.
  template <typename Self, typename Predicate>
  static bool all_of(Self& self, Predicate holds);
  template <typename T>
  void begin(kube::Informer<T>& informer, const char* resource);
  template <typename T>
  auto follow(Owned<T>& index);
  void node_changed(const std::shared_ptr<const api::Node>& before, const std::shared_ptr<const api::Node>& after);

  Settings settings_;
  OnJob on_job_;
  OnChange on_change_;
  OnTrouble on_trouble_;
  Owned<api::Pod> owned_pods_;
  Owned<api::Service> owned_services_;
  Owned<api::PodGroup> owned_pod_groups_;
  Owned<api::Autoscaler> owned_autoscalers_;
  std::map<std::string, const api::Node*> nodes_by_name_;

  kube::Informer<WatchedJob> jobs_;
  kube::Informer<api::Pod> pods_;
  kube::Informer<api::Service> services_;
  kube::Informer<api::Autoscaler> autoscalers_;
  kube::Informer<api::Node> nodes_;
  kube::Informer<api::PodGroup> pod_groups_;
};

/// "namespace/name"
[[nodiscard]] std::string key_of(const api::Meta& meta);
[[nodiscard]] const kube::Resource& resource_of(decide::Kind kind, decide::GangScheduler gang_scheduler);

}  // namespace trainyard::controller
