#include "controller/reconciler.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "unit/operator/controller/api_server.h"
#include "unit/operator/controller/objects.h"

using namespace trainyard;
using namespace trainyard::controller;
using namespace trainyard::controller::test;
using decide::Kind;

namespace {

const std::string kStatus = "PATCH " + kJob + "/status";

struct CountedLooks : Counters {
  int deleted = 0, succeeded = 0, failed = 0;
  void count(const std::string&, const JobCounts&) override {}
  void count_deleted(const std::string&) override { ++deleted; }
  void observe_reconcile(double, bool has_succeeded) override { ++(has_succeeded ? succeeded : failed); }
};

/// A new job with a master and a worker.
Json new_job(const std::string& version = "10") {
  Json job = job_object(version);
  Json& replicas = job["spec"]["pytorchReplicaSpecs"];
  replicas["Master"] = replicas["Worker"];
  return job;
}

/// A reconciler and the API server that it acts on, which has that job and nothing else.
struct Operator {
  ApiServer api;
  kube::EventLoop loop;
  kube::Client client{loop, kube::Config{.endpoint = {.server = api.url()}}};
  kube::EventRecorder events{client, "test", "host"};
  CountedLooks counters;
  OperatorKey key{"a key of the operator's"};
  std::vector<std::string> jobs;
  Reconciler reconciler;

  explicit Operator(const Json& job = new_job())
      : reconciler(client, events, counters, key, {.decisions = {.watches_nodes = false}, .ns = "ns"},
                   {.on_job =
                        [this](const WatchedJob* before, const WatchedJob* after) {
                          jobs.push_back(fmt::format("{}{}", before ? "-" : "", after ? "+" : ""));
                        },
                    .on_trouble = [](const std::string&, const kube::ApiError&) {}}) {
    api.set_list(kJobs, Json::array({job}));
    for (const std::string& path : {kPods, kServices, kAutoscalers}) api.set_list(path, Json::array());
  }

  void sync() {
    reconciler.start();
    run_until(loop, [this] { return reconciler.cluster().is_synced(); });
  }
  /// All that has been asked for so far has had its turn.
  void take_turns() {
    loop.post([this] { loop.post([this] { loop.stop(); }); });
    loop.run();
  }
  [[nodiscard]] size_t writes() const {
    return static_cast<size_t>(std::ranges::count_if(
        api.requests(), [](const std::string& request) { return !request.starts_with("GET "); }));
  }
  /// Until the server has answered that the job is gone, which it does where nothing is prepared.
  void run_until_gone() {
    run_until(loop, [this] { return !reconciler.cluster().job("ns/job") && reconciler.queued() == 0; });
  }
};

}  // namespace

TEST_CASE("reconciler: nothing is decided before it leads, and every job is once it does", "[controller]") {
  Operator one;
  one.sync();
  one.take_turns();
  CHECK(one.jobs == std::vector<std::string>{"+"});
  CHECK(one.reconciler.queued() == 1);
  CHECK(one.writes() == 0);
  one.reconciler.lead();
  run_until(one.loop, [&] { return one.writes() > 0; });
  CHECK(one.api.body_of(kStatus).at("metadata").at("resourceVersion") == "10");
}

TEST_CASE("reconciler: nothing is decided before all that is watched has been listed", "[controller]") {
  Operator one;
  one.api.prepare("GET " + kServices, 403, refusal("Forbidden", "no right"));  // it is asked for again, later
  std::optional<bool> was_current;
  one.client.set_observer([&](const kube::Exchange& each) {
    if (each.method == kube::Method::Patch && !was_current) was_current = one.reconciler.cluster().is_current();
  });
  one.reconciler.start();
  one.reconciler.lead();
  run_until(one.loop, [&] { return was_current.has_value(); });
  CHECK(*was_current);
}

TEST_CASE("reconciler: nothing is decided after it has yielded", "[controller]") {
  Operator one;
  one.sync();
  one.reconciler.lead();
  one.reconciler.yield();
  one.reconciler.cluster().learn(Kind::Job, new_job("12"));
  one.take_turns();
  CHECK(one.reconciler.queued() == 1);
  CHECK(one.writes() == 0);
}

TEST_CASE("reconciler: what was decided by an old state is decided again by the new one", "[controller]") {
  Operator one;
  one.api.prepare(kStatus, 409, refusal("Conflict", "it has been changed"));
  one.api.prepare("GET " + kJob, 200, new_job("12"));
  one.sync();
  one.reconciler.lead();
  one.run_until_gone();
  CHECK(one.writes() == 2);
  CHECK(one.api.body_of(kStatus).at("metadata").at("resourceVersion") == "12");
  CHECK(one.counters.failed == 0);
}

TEST_CASE("reconciler: a look that fails is counted as failed, and the job is looked at again", "[controller]") {
  Operator one;
  one.api.prepare(kStatus, 403, refusal("Forbidden", "no right"));
  one.api.prepare("GET " + kJob, 200, new_job());
  one.sync();
  one.reconciler.lead();
  one.run_until_gone();
  CHECK(one.writes() == 2);
  CHECK(one.counters.failed == 1);
  CHECK(one.counters.succeeded == 1);
}

TEST_CASE("reconciler: a job that goes is counted by the leader alone, and not looked at any more", "[controller]") {
  const bool leads = GENERATE(false, true);
  Operator one;
  if (leads) one.reconciler.lead();
  one.reconciler.cluster().learn(Kind::Job, new_job());
  CHECK(one.reconciler.queued() == 1);
  one.reconciler.cluster().forget(Kind::Job, "ns", "job", "uid-job");
  CHECK(one.jobs == std::vector<std::string>{"+", "-"});
  CHECK(one.counters.deleted == (leads ? 1 : 0));
  CHECK(one.reconciler.queued() == 0);
}

TEST_CASE("reconciler: a job that cannot be read is left alone", "[controller]") {
  Json job = new_job();
  job["spec"]["pytorchReplicaSpecs"] = 5;
  Operator one(job);
  one.sync();
  one.reconciler.lead();
  run_until(one.loop, [&] { return one.reconciler.queued() == 0; });
  CHECK(one.writes() == 0);
  CHECK(one.counters.succeeded + one.counters.failed == 0);
}

TEST_CASE("reconciler: a post has its job looked at, and that of a job that is not there is dropped", "[controller]") {
  Operator one;
  one.reconciler.take_post("ns/none", {});
  CHECK(one.reconciler.queued() == 0);
  Json job = new_job();
  job["spec"]["pytorchReplicaSpecs"] = 5;  // it is looked at, and nothing is written
  one.api.set_list(kJobs, Json::array({job}));
  one.sync();
  one.reconciler.lead();
  run_until(one.loop, [&] { return one.reconciler.queued() == 0; });
  one.reconciler.take_post("ns/job", {});
  CHECK(one.reconciler.queued() == 1);
}
