#include "decide/rules/gang.h"

#include <catch2/catch.hpp>

#include "unit/operator/decide/world.h"

using namespace trainyard;
using namespace trainyard::decide;
using namespace trainyard::decide::test;
using namespace std::chrono_literals;

namespace {

const TimePoint kThen{1000h};

struct Ended {
  std::string name;
  int exit_code;
  std::chrono::seconds after{};
  bool is_init = false, is_restartable = false;
};

api::Pod pod_with(const std::vector<Ended>& all) {
  api::Pod pod;
  for (const Ended& one : all) {
    api::ContainerStatus status;
    status.name = one.name, status.is_init = one.is_init, status.is_restartable = one.is_restartable;
    status.state = api::ContainerState::Terminated;
    status.exit_code = one.exit_code, status.ended = kThen + one.after;
    pod.containers.push_back(status);
  }
  return pod;
}

std::string name_of(const api::ContainerStatus* container) {
  return container ? container->name : "none";
}

}  // namespace

TEST_CASE("gang_of: each place by rank has its pod and service, and what the job owns beyond is surplus by name",
          "[decide]") {
  World world = running_gang();
  std::map<std::string, api::Pod> pods = world.pods;
  for (const char* const name : {"job-worker-9", "job-worker-2"}) pods[name].name = name;
  pods.erase("job-worker-0");
  Observed seen{world.job, {}, {}};
  for (const auto& [name, pod] : pods) seen.pods.push_back(&pod);
  const api::Service& service = world.services.at("job-worker-1");
  seen.services = {&service};

  const Gang gang = gang_of(seen);
  std::vector<std::string> places, surplus;
  for (const Replica& replica : gang.replicas) places.push_back(replica.name);
  for (const api::Pod* pod : gang.surplus_pods) surplus.push_back(pod->name);
  CHECK(places == std::vector<std::string>{"job-master-0", "job-worker-0", "job-worker-1"});
  CHECK(gang.replicas[0].pod == &pods.at("job-master-0"));
  CHECK(gang.replicas[1].pod == nullptr);
  CHECK(gang.replicas[2].pod == &pods.at("job-worker-1"));
  CHECK(gang.replicas[1].service == nullptr);
  CHECK(gang.replicas[2].service == &service);
  CHECK(gang.replicas[0].type == api::ReplicaType::Master);
  CHECK(gang.replicas[2].index == 1);
  CHECK(surplus == std::vector<std::string>{"job-worker-2", "job-worker-9"});
  CHECK(gang.surplus_services.empty());
}

TEST_CASE("is_current: a pod without a generation is of the first one", "[decide]") {
  api::Pod pod;
  api::JobStatus status;
  CHECK(is_current(pod, status));
  status.restarts.generation = 2;
  CHECK_FALSE(is_current(pod, status));
  pod.generation = 2;
  CHECK(is_current(pod, status));
}

TEST_CASE("ended_container: pytorch decides, else the first that ended badly, never a restartable init container",
          "[decide]") {
  CHECK(name_of(ended_container(pod_with({{"log", 3}, {"pytorch", 0}}))) == "pytorch");
  CHECK(name_of(ended_container(pod_with({{"good", 0}, {"log", 3}, {"more", 4}}))) == "log");
  CHECK(name_of(ended_container(pod_with({{"good", 0}}))) == "none");
  CHECK(name_of(ended_container(pod_with({{"sidecar", 1, 0s, true, true}}))) == "none");
  CHECK(name_of(ended_container(pod_with({{"init", 1, 0s, true}}))) == "init");
  CHECK(name_of(ended_container({})) == "none");
}

TEST_CASE("failed_container: the cause is pytorch, else what failed first, else an init container", "[decide]") {
  CHECK(name_of(failed_container(pod_with({{"log", 3, 1s}, {"pytorch", 1, 9s}}))) == "pytorch");
  CHECK(name_of(failed_container(pod_with({{"pytorch", 0, 1s}, {"late", 3, 5s}, {"early", 4, 2s}}))) == "early");
  CHECK(name_of(failed_container(pod_with({{"init", 1, 0s, true}, {"log", 3, 9s}}))) == "log");
  CHECK(name_of(failed_container(pod_with({{"sidecar", 1, 0s, true, true}, {"init", 1, 0s, true}}))) == "init");
  CHECK(name_of(failed_container(pod_with({{"sidecar", 1, 0s, true, true}, {"pytorch", 0}}))) == "none");
}

TEST_CASE("bound_since: when the pod got its node, or where that is not told when it was made", "[decide]") {
  api::Pod pod;
  pod.created = kThen;
  CHECK(bound_since(pod) == kThen);
  pod.conditions.push_back({"PodScheduled", false, "Unschedulable", "", kThen + 1s});
  CHECK(bound_since(pod) == kThen);
  pod.conditions.push_back({"PodScheduled", true, "", "", kThen + 5s});
  CHECK(bound_since(pod) == kThen + 5s);
}
