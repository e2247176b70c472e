#include "controller/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "unit/operator/controller/api_server.h"
#include "unit/operator/controller/objects.h"

using namespace trainyard;
using namespace trainyard::controller;
using namespace trainyard::controller::test;
using decide::Kind;

namespace {

using Texts = std::vector<std::string>;

const std::string kNodes = "/api/v1/nodes";
const std::string kPodGroups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups";

/// A cluster's state, and all that it tells of.
struct Watcher {
  ApiServer api;
  kube::EventLoop loop;
  kube::Client client{loop, kube::Config{.endpoint = {.server = api.url()}}};
  Texts jobs, changes, troubles;
  Cluster cluster;

  explicit Watcher(const Cluster::Settings& settings = {.ns = "ns", .watches_nodes = false})
      : cluster(
            client, settings,
            [this](const auto& before, const auto& after) {
              jobs.push_back(fmt::format("{}{}", before ? "-" : "", after ? "+" : ""));
            },
            [this](const std::string& key) { changes.push_back(key); },
            [this](const std::string& resource, const kube::ApiError& error) {
              troubles.push_back(fmt::format("{}: {}", resource, error.message));
            }) {
    api.set_list(kJobs, Json::array({job_object()}));
    api.set_list(kPods, Json::array({object_of("Pod", "job-worker-0"), object_of("Pod", "other", "uid-other")}));
    api.set_list(kServices, Json::array({object_of("Service", "job-worker-0")}));
    api.set_list(kAutoscalers, Json::array());
    api.set_list(kPodGroups, Json::array());
    api.set_list(kNodes, Json::array());
  }

  void sync() {
    cluster.start();
    run_until(loop, [this] { return cluster.is_synced(); });
  }
  [[nodiscard]] decide::Observed seen() const { return cluster.observe(*cluster.job("ns/job")); }
  [[nodiscard]] bool has_asked(const std::string& request) const {
    return std::ranges::count(api.requests(), request) > 0;
  }
};

Json node(const std::string& version, const char* ready) {
  return {{"kind", "Node"},
          {"metadata", {{"name", "node-1"}, {"uid", "uid-node-1"}, {"resourceVersion", version}}},
          {"status", {{"conditions", {{{"type", "Ready"}, {"status", ready}}}}}}};
}

Json of_version(Json object, const char* version) {
  object["metadata"]["resourceVersion"] = version;
  return object;
}

}  // namespace

TEST_CASE("cluster: it is synced once all that it watches has been listed, and knows what each job controls",
          "[controller]") {
  Watcher watcher;
  CHECK_FALSE(watcher.cluster.is_synced());
  watcher.sync();
  CHECK(watcher.cluster.is_current());
  CHECK(watcher.jobs == Texts{"+"});
  CHECK(watcher.changes == Texts(3, "ns/job"));
  CHECK(watcher.cluster.pod_count() == 2);
  const decide::Observed seen = watcher.seen();
  REQUIRE(seen.pods.size() == 1);
  CHECK(seen.pods[0]->name == "job-worker-0");
  CHECK(seen.services.size() == 1);
  CHECK(watcher.cluster.job("ns/none") == nullptr);
}

TEST_CASE("cluster: nodes and gangs are asked for where they are watched, and only there", "[controller]") {
  const bool are_watched = GENERATE(false, true);
  const auto gangs = are_watched ? decide::GangScheduler::Volcano : decide::GangScheduler::None;
  Watcher watcher({.ns = "ns", .gang_scheduler = gangs, .watches_nodes = are_watched});
  watcher.sync();
  CHECK(watcher.has_asked("GET " + kNodes) == are_watched);
  CHECK(watcher.has_asked("GET " + kPodGroups) == are_watched);
}

TEST_CASE("cluster: pods and services are asked for by the operator's label", "[controller]") {
  Watcher watcher;
  Texts asked;
  watcher.client.set_observer([&](const kube::Exchange& one) { asked.emplace_back(one.path); });
  watcher.sync();
  const auto is_labelled = [](const std::string& path) {
    return path.find("labelSelector=training.kubeflow.org%2Foperator-name%3Dpytorchjob-controller") != path.npos;
  };
  for (const std::string& path : asked)
    CHECK(is_labelled(path) == (path.starts_with(kPods) || path.starts_with(kServices)));
}

TEST_CASE("cluster: a list that is refused is told of by its resource, and asked for again", "[controller]") {
  Watcher watcher;
  watcher.api.prepare("GET " + kServices, 403, refusal("Forbidden", "no right"));
  watcher.sync();
  CHECK(std::ranges::count(watcher.troubles, "services: no right") == 1);
  CHECK(watcher.seen().services.size() == 1);
}

TEST_CASE("cluster: while everything is read anew it is not current, and what it holds stays until then",
          "[controller]") {
  Watcher watcher;
  watcher.sync();
  watcher.api.set_list(kPods, Json::array());
  watcher.cluster.refresh();
  CHECK_FALSE(watcher.cluster.is_current());
  CHECK(watcher.cluster.is_synced());
  CHECK(watcher.seen().pods.size() == 1);
  run_until(watcher.loop, [&] { return watcher.cluster.is_current(); });
  CHECK(watcher.seen().pods.empty());
}

TEST_CASE("cluster: the answer to a write is seen at once, and told of by its job's key", "[controller]") {
  Watcher watcher;
  watcher.cluster.learn(Kind::Job, job_object());
  watcher.cluster.learn(Kind::Pod, object_of("Pod", "job-worker-0"));
  CHECK(watcher.changes == Texts{"ns/job"});
  CHECK(watcher.seen().pods.size() == 1);
  watcher.cluster.forget(Kind::Pod, "ns", "job-worker-0", "uid-of-another");
  CHECK(watcher.seen().pods.size() == 1);
  watcher.cluster.forget(Kind::Pod, "ns", "job-worker-0", "uid-job-worker-0");
  CHECK(watcher.seen().pods.empty());
  CHECK(watcher.changes == Texts{"ns/job", "ns/job"});
}

TEST_CASE("cluster: a pod that gets another owner is no longer the job's", "[controller]") {
  Watcher watcher;
  watcher.cluster.learn(Kind::Job, job_object());
  watcher.cluster.learn(Kind::Pod, object_of("Pod", "job-worker-0"));
  watcher.cluster.learn(Kind::Pod, of_version(object_of("Pod", "job-worker-0", "uid-other"), "30"));
  CHECK(watcher.seen().pods.empty());
  watcher.cluster.learn(Kind::Pod, object_of("Pod", "job-worker-0"));  // an answer that comes late
  CHECK(watcher.seen().pods.empty());
}

TEST_CASE("cluster: of several autoscalers of one job the first is its own", "[controller]") {
  Watcher watcher;
  watcher.cluster.learn(Kind::Job, job_object());
  CHECK(watcher.seen().autoscaler == nullptr);
  for (const char* const name : {"b", "a"})
    watcher.cluster.learn(Kind::Autoscaler, object_of("HorizontalPodAutoscaler", name));
  REQUIRE(watcher.seen().autoscaler);
  CHECK(watcher.seen().autoscaler->name == "a");
}

TEST_CASE("cluster: a job that cannot be read is there, with what is wrong", "[controller]") {
  Watcher watcher;
  Json job = job_object();
  job["spec"]["pytorchReplicaSpecs"] = 5;
  watcher.cluster.learn(Kind::Job, job);
  REQUIRE(watcher.cluster.job("ns/job"));
  CHECK_THAT(watcher.cluster.job("ns/job")->defect, Catch::Contains("pytorchReplicaSpecs must be an object, but is 5"));
  CHECK(watcher.cluster.job("ns/job")->uid == "uid-job");
}

TEST_CASE("cluster: a node's heartbeat asks for no job, and a change of its health for those of its pods",
          "[controller]") {
  Watcher watcher({.ns = "ns"});
  Json pod = object_of("Pod", "job-worker-0");
  pod["spec"]["nodeName"] = "node-1";
  watcher.api.set_list(kPods, Json::array({pod}));
  watcher.api.set_list(kNodes, Json::array({node("20", "True")}));
  watcher.sync();
  REQUIRE(watcher.seen().nodes->contains("node-1"));
  watcher.changes.clear();
  std::string events;
  for (const Json& object : {node("101", "True"), node("102", "False")})
    events += dump(Json{{"type", "MODIFIED"}, {"object", object}}) + "\n";
  watcher.api.prepare("GET " + kNodes, 200, events);
  run_until(watcher.loop, [&] { return !watcher.changes.empty(); });
  CHECK(watcher.changes == Texts{"ns/job"});
  CHECK_FALSE(watcher.seen().nodes->at("node-1")->is_ready);
}
