#include "controller/execution.h"

#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "unit/operator/controller/api_server.h"
#include "unit/operator/controller/objects.h"

using namespace trainyard;
using namespace trainyard::controller;
using namespace std::chrono_literals;
using namespace controller::test;
using decide::Kind;

namespace {

const Json kGone = {{"kind", "Status"}, {"status", "Success"}};

decide::Create create_of(Kind kind, const char* kind_name, const std::string& name) {
  return {kind, name, object_of(kind_name, name)};
}

struct CountedJobs : Counters {
  int created = 0;
  void count(const std::string&, const JobCounts& counts) override { created += counts.created; }
  void count_deleted(const std::string&) override {}
  void observe_reconcile(double, bool) override {}
};

/// An API server, and all that carries a plan out against it.
struct Carrier {
  ApiServer api;
  kube::EventLoop loop;
  std::unique_ptr<kube::Client> client =
      std::make_unique<kube::Client>(loop, kube::Config{.endpoint = {.server = api.url()}});
  std::vector<std::string> troubles;
  Cluster::OnTrouble on_trouble = [this](const std::string& what, const kube::ApiError&) { troubles.push_back(what); };
  Cluster cluster{*client, {}, [](const auto&, const auto&) {}, [](const std::string&) {}, on_trouble};
  kube::EventRecorder events{*client, "test", "host"};
  CountedJobs counters;
  OperatorKey key{"a key of the operator's"};
  std::shared_ptr<Memory> memory = std::make_shared<Memory>();
  std::vector<Outcome> outcomes;

  Carrier() { cluster.learn(Kind::Job, job_object()); }

  void start(decide::Plan plan, Stage::Later later) {
    const auto scheduler = decide::GangScheduler::None;
    const Hands hands{*client, cluster, events, counters, key, scheduler, on_trouble, std::move(later)};
    const auto done = [this](Outcome outcome) {
      outcomes.push_back(outcome);
      loop.stop();
    };
    std::make_shared<Execution>(hands, cluster.job("ns/job"), memory, std::move(plan), done)->start();
  }

  /// How it ended, once.
  Outcome carry_out(decide::Plan plan) {
    start(std::move(plan), [this](Stage::Task task) { loop.post(std::move(task)); });
    const auto limit = loop.after(30s, [] { throw std::runtime_error("the plan has not ended within 30 s"); });
    loop.run();
    loop.cancel(limit);
    REQUIRE(outcomes.size() == 1);
    return outcomes.front();
  }

  [[nodiscard]] size_t pods() const { return cluster.observe(*cluster.job("ns/job")).pods.size(); }
};

/// A status of generation 2 to be written.
decide::Plan status_plan() {
  decide::Plan plan;
  plan.status = api::JobStatus();
  plan.status->restarts.generation = 2;
  plan.creates = {create_of(Kind::Pod, "Pod", "job-worker-0")};
  return plan;
}

}  // namespace

TEST_CASE("execution: with nothing to do it is done", "[controller]") {
  Carrier carrier;
  CHECK(carrier.carry_out({}) == Outcome::Done);
  CHECK(carrier.api.requests().empty());
}

TEST_CASE("execution: all stages are answered: the status, what pods need, and the rest, in this order",
          "[controller]") {
  Carrier carrier;
  decide::Plan plan = status_plan();
  plan.prepare = {create_of(Kind::Secret, "Secret", "token")};
  plan.creates.push_back(create_of(Kind::Service, "Service", "job-worker-0"));
  carrier.api.prepare("PATCH " + kJob + "/status", 200, job_object("11", api::to_json(*plan.status)));
  carrier.api.prepare("POST " + kSecrets, 201, object_of("Secret", "token"));
  carrier.api.prepare("POST " + kPods, 201, object_of("Pod", "job-worker-0"));
  carrier.api.prepare("POST " + kServices, 201, object_of("Service", "job-worker-0"));
  CHECK(carrier.carry_out(std::move(plan)) == Outcome::Done);
  const std::vector<std::string> requests = carrier.api.requests();
  REQUIRE(requests.size() == 4);
  CHECK(requests[0] == "PATCH " + kJob + "/status");
  CHECK(requests[1] == "POST " + kSecrets);
  CHECK(carrier.api.body_of(requests[0]).at("metadata").at("resourceVersion") == "10");
  CHECK(carrier.api.body_of(requests[1]).at("stringData").at("token") ==
        job_token(carrier.key, "ns", "job", "uid-job"));
  CHECK(carrier.memory->token_is_there);
  CHECK(carrier.pods() == 1);  // known before any watch tells
  CHECK(carrier.cluster.job("ns/job")->status.restarts.generation == 2);
}

TEST_CASE("execution: a refused create fails the look and is remembered, until it is made", "[controller]") {
  Carrier carrier;
  decide::Plan plan;
  plan.creates = {create_of(Kind::Pod, "Pod", "job-worker-0")};
  carrier.api.prepare("POST " + kPods, 403, refusal("Forbidden", "over quota"));
  CHECK(carrier.carry_out(plan) == Outcome::Failed);
  CHECK(carrier.memory->refused == decide::RefusedCreates{{{Kind::Pod, "job-worker-0"}, "over quota"}});
  CHECK(carrier.pods() == 0);

  carrier.outcomes.clear();
  carrier.api.prepare("POST " + kPods, 201, object_of("Pod", "job-worker-0"));
  CHECK(carrier.carry_out(plan) == Outcome::Done);
  CHECK(carrier.memory->refused.empty());
}

TEST_CASE("execution: a pod stays refused where only its service, which has its name, is made", "[controller]") {
  Carrier carrier;
  decide::Plan plan;
  plan.creates = {create_of(Kind::Pod, "Pod", "job-worker-0")};
  carrier.api.prepare("POST " + kPods, 403, refusal("Forbidden", "over quota"));
  CHECK(carrier.carry_out(plan) == Outcome::Failed);

  carrier.outcomes.clear();
  plan.creates = {create_of(Kind::Service, "Service", "job-worker-0")};
  carrier.api.prepare("POST " + kServices, 201, object_of("Service", "job-worker-0"));
  CHECK(carrier.carry_out(plan) == Outcome::Done);
  CHECK(carrier.memory->refused == decide::RefusedCreates{{{Kind::Pod, "job-worker-0"}, "over quota"}});
}

TEST_CASE("execution: where what pods need is refused nothing else is written", "[controller]") {
  Carrier carrier;
  decide::Plan plan;
  plan.prepare = {create_of(Kind::Secret, "Secret", "token")};
  plan.creates = {create_of(Kind::Pod, "Pod", "job-worker-0")};
  carrier.api.prepare("POST " + kSecrets, 403, refusal("Forbidden", "no right"));
  CHECK(carrier.carry_out(plan) == Outcome::Failed);
  CHECK(carrier.api.requests() == std::vector<std::string>{"POST " + kSecrets});
  CHECK(carrier.troubles == std::vector<std::string>{"secrets"});
}

TEST_CASE("execution: a name that another owner's object has is remembered as foreign, and asked for again",
          "[controller]") {
  Carrier carrier;
  decide::Plan plan;
  plan.creates = {create_of(Kind::Pod, "Pod", "job-worker-0")};
  carrier.api.prepare("POST " + kPods, 409, refusal("AlreadyExists", "it is there"));
  carrier.api.prepare("GET " + kPods + "/job-worker-0", 200, object_of("Pod", "job-worker-0", "uid-another"));
  CHECK(carrier.carry_out(plan) == Outcome::Failed);
  CHECK(carrier.memory->foreign_pods == decide::ForeignNames{{"job-worker-0", std::nullopt}});
  CHECK(carrier.pods() == 0);

  carrier.outcomes.clear();
  carrier.memory->foreign_checked = {};  // as after its interval
  CHECK(carrier.carry_out({}) == Outcome::Stale);  // 404: the name is free
  CHECK(carrier.memory->foreign_pods.empty());
}

TEST_CASE("execution: a create whose fate is unknown is looked for, and ours counts as made", "[controller]") {
  Carrier carrier;
  decide::Plan plan;
  plan.creates = {create_of(Kind::Pod, "Pod", "job-worker-0")};
  carrier.api.prepare("POST " + kPods, 500, refusal("InternalError", "etcd is slow"));
  carrier.api.prepare("GET " + kPods + "/job-worker-0", 200, object_of("Pod", "job-worker-0"));
  CHECK(carrier.carry_out(plan) == Outcome::Done);
  CHECK(carrier.pods() == 1);
}

TEST_CASE("execution: a conflict on the status is stale, the job is read back, and nothing else is written",
          "[controller]") {
  Carrier carrier;
  carrier.api.prepare("PATCH " + kJob + "/status", 409, refusal("Conflict", "it has been changed"));
  carrier.api.prepare("GET " + kJob, 200, job_object("12"));
  CHECK(carrier.carry_out(status_plan()) == Outcome::Stale);
  CHECK(carrier.cluster.job("ns/job")->resource_version == "12");
  CHECK(carrier.api.requests() == std::vector<std::string>{"PATCH " + kJob + "/status", "GET " + kJob});
  CHECK(carrier.troubles.empty());
}

TEST_CASE("execution: the status of a job that is gone is stale, and without the subresource it fails",
          "[controller]") {
  const bool is_gone = GENERATE(false, true);
  Carrier carrier;  // PATCH: 404
  if (!is_gone) carrier.api.prepare("GET " + kJob, 200, job_object("12"));
  CHECK(carrier.carry_out(status_plan()) == (is_gone ? Outcome::Stale : Outcome::Failed));
  CHECK((carrier.cluster.job("ns/job") == nullptr) == is_gone);
  CHECK(carrier.troubles.size() == (is_gone ? 0 : 1));
}

TEST_CASE("execution: where the CRD drops the generation nothing is written, and where it drops counts the rest is",
          "[controller]") {
  const bool has_generation = GENERATE(false, true);
  Carrier carrier;
  decide::Plan plan = status_plan();
  plan.status->restarts.count = 1;
  api::JobStatus kept = *plan.status;
  kept.restarts.count = 0;
  if (!has_generation) kept.restarts = {};
  carrier.api.prepare("PATCH " + kJob + "/status", 200, job_object("11", api::to_json(kept)));
  carrier.api.prepare("POST " + kPods, 201, object_of("Pod", "job-worker-0"));
  CHECK(carrier.carry_out(std::move(plan)) == Outcome::Failed);
  CHECK(carrier.pods() == (has_generation ? 1 : 0));
  CHECK(carrier.troubles == std::vector<std::string>{"status.restarts"});
}

TEST_CASE("execution: a delete of what is gone already is done", "[controller]") {
  const int status = GENERATE(200, 404);
  Carrier carrier;
  carrier.cluster.learn(Kind::Pod, object_of("Pod", "job-worker-0"));
  decide::Plan plan;
  plan.deletes = {{Kind::Pod, "job-worker-0", "uid-job-worker-0"}};
  const std::string request = "DELETE " + kPods + "/job-worker-0";
  if (status == 200) carrier.api.prepare(request, 200, kGone);
  CHECK(carrier.carry_out(plan) == Outcome::Done);
  CHECK(carrier.api.body_of(request).at("preconditions").at("uid") == "uid-job-worker-0");
  CHECK(carrier.pods() == 0);
}

TEST_CASE("execution: what a delete or a patch was refused for is read back", "[controller]") {
  Carrier carrier;
  carrier.cluster.learn(Kind::Pod, object_of("Pod", "job-worker-0"));
  decide::Plan plan;
  SECTION("a pod that was made anew under the name") {
    plan.deletes = {{Kind::Pod, "job-worker-0", "uid-job-worker-0"}};
    carrier.api.prepare("DELETE " + kPods + "/job-worker-0", 409, refusal("Conflict", "another uid"));
  }
  SECTION("a pod that was changed since") {
    plan.patches = {{Kind::Pod, "job-worker-0", "20", {{"spec", Json::object()}}}};
    carrier.api.prepare("PATCH " + kPods + "/job-worker-0", 409, refusal("Conflict", "another version"));
  }
  Json changed = object_of("Pod", "job-worker-0");
  changed["metadata"]["resourceVersion"] = "30";
  changed["status"]["phase"] = "Running";
  carrier.api.prepare("GET " + kPods + "/job-worker-0", 200, changed);
  CHECK(carrier.carry_out(plan) == Outcome::Failed);
  REQUIRE(carrier.pods() == 1);
  CHECK(carrier.cluster.observe(*carrier.cluster.job("ns/job")).pods[0]->phase == "Running");
}

TEST_CASE("execution: calls that the client drops end the look, which has failed", "[controller]") {
  const bool has_status = GENERATE(false, true);
  Carrier carrier;
  decide::Plan plan = status_plan();
  if (!has_status) plan.status.reset();
  std::deque<Stage::Task> turns;
  carrier.start(std::move(plan), [&turns](Stage::Task task) { turns.push_back(std::move(task)); });
  const auto take_turns = [&turns] {
    for (; !turns.empty(); turns.pop_front()) turns.front()();
  };
  take_turns();
  CHECK(carrier.outcomes.empty());
  carrier.client.reset();
  take_turns();
  CHECK(carrier.outcomes == std::vector{Outcome::Failed});
  CHECK(carrier.api.requests().empty());
}
