#include "api/job.h"

#include <catch2/catch.hpp>
#include <limits>

#include "unit/operator/api/samples.h"

namespace trainyard::api {
namespace {

using Catch::Matchers::Contains;

Job defaulted(const Json& patch) {
  Json json = sample_job();
  json.merge_patch(patch);
  Job job = parse_job(json);
  set_defaults(job);
  return job;
}

Json ports_of(const Job& job, ReplicaType type) {
  const Json* const ports = list_at(job.spec.replicas.at(type).pod_template, "/spec/containers/0/ports");
  return ports ? *ports : Json();
}

}  // namespace

TEST_CASE("parse_job: every field of the spec arrives", "[api]") {
  const Job job = parse_job(Json::parse(R"({"metadata": {"name": "n"}, "spec": {
    "nprocPerNode": "gpu",
    "runPolicy": {"cleanPodPolicy": "Running", "ttlSecondsAfterFinished": 10, "activeDeadlineSeconds": 100,
      "backoffLimit": 3, "suspend": true, "managedBy": "who", "schedulingPolicy": {"minAvailable": 2, "queue": "q",
      "minResources": {"cpu": 2}, "priorityClass": "high", "scheduleTimeoutSeconds": 30}},
    "elasticPolicy": {"minReplicas": 1, "maxReplicas": 2, "rdzvBackend": "c10d", "rdzvPort": 5, "rdzvHost": "h",
      "rdzvId": "i", "rdzvConf": [{"key": "a", "value": "b"}], "standalone": true, "nProcPerNode": 4,
      "maxRestarts": 6, "metrics": [{"type": "Resource"}]},
    "pytorchReplicaSpecs": {"Worker": {"replicas": 7, "restartPolicy": "ExitCode"}}}})"));
  CHECK(job.name == "n");
  CHECK(job.spec.nproc_per_node == "gpu");
  const RunPolicy& policy = job.spec.run_policy;
  CHECK(policy.clean_pod_policy == "Running");
  CHECK(policy.ttl_seconds_after_finished == 10);
  CHECK(policy.active_deadline_seconds == 100);
  CHECK(policy.backoff_limit == 3);
  CHECK(policy.suspend);
  CHECK(policy.managed_by == "who");
  CHECK(policy.scheduling->min_available == 2);
  CHECK(policy.scheduling->queue == "q");
  CHECK(policy.scheduling->min_resources == Json{{"cpu", 2}});
  CHECK(policy.scheduling->priority_class == "high");
  CHECK(policy.scheduling->schedule_timeout_seconds == 30);
  const ElasticPolicy& elastic = *job.spec.elastic;
  CHECK(elastic.min_replicas == 1);
  CHECK(elastic.max_replicas == 2);
  CHECK(elastic.rdzv_backend == "c10d");
  CHECK(elastic.rdzv_port == 5);
  CHECK(elastic.rdzv_host == "h");
  CHECK(elastic.rdzv_id == "i");
  CHECK(elastic.rdzv_conf == std::vector<std::pair<std::string, std::string>>{{"a", "b"}});
  CHECK(elastic.standalone);
  CHECK(elastic.nproc_per_node == 4);
  CHECK(elastic.max_restarts == 6);
  CHECK(elastic.metrics == Json::array({{{"type", "Resource"}}}));
  const ReplicaSpec& worker = job.spec.replicas.at(ReplicaType::Worker);
  CHECK(worker.replicas == 7);
  CHECK(worker.restart_policy == "ExitCode");
  CHECK(worker.pod_template == Json::object());
}

TEST_CASE("parse_job: what is absent or null is empty, not an error", "[api]") {
  for (const char* const text :
       {R"({})", R"({"spec": null})", R"({"spec": {"pytorchReplicaSpecs": null, "runPolicy": null}})",
        R"({"spec": {"pytorchReplicaSpecs": {}, "elasticPolicy": null}})"}) {
    Job job = parse_job(Json::parse(text));
    set_defaults(job);
    CHECK(job.spec.replicas.empty());
    CHECK_FALSE(job.spec.elastic);
  }
  CHECK(parse_job(Json::parse(R"({"spec": {"elasticPolicy": {"rdzvConf": []}}})")).spec.elastic->rdzv_conf.empty());
}

TEST_CASE("parse_job: a wrong type names the path, what is there and what is allowed", "[api]") {
  const std::pair<const char*, const char*> rows[] = {
      {R"([])", "the job must be an object, but is a list"},
      {R"({"spec": 7})", "spec must be an object, but is 7"},
      {R"({"spec": {"pytorchReplicaSpecs": {"Master": {"replicas": "one"}}}})",
       "spec.pytorchReplicaSpecs.Master.replicas must be a whole number from -2147483648 to 2147483647, "
       "but is \"one\""},
      {R"({"spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1.5}}}})", "but is 1.5"},
      {R"({"spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 3000000000}}}})", "but is 3000000000"},
      {R"({"spec": {"pytorchReplicaSpecs": {"Launcher": {}}}})",
       "spec.pytorchReplicaSpecs must have no other keys than Master and Worker, but has \"Launcher\""},
      {R"({"spec": {"runPolicy": {"suspend": "true"}}})",
       "spec.runPolicy.suspend must be true or false, but is \"true\""},
      {R"({"spec": {"runPolicy": {"activeDeadlineSeconds": 18446744073709551615}}})", "spec.runPolicy.activeDeadline"},
      {R"({"spec": {"nprocPerNode": 4}})", "spec.nprocPerNode must be a text, but is 4"},
      {R"({"spec": {"elasticPolicy": {"rdzvConf": {"a": "b"}}}})",
       "spec.elasticPolicy.rdzvConf must be a list, but is an object"},
      {R"({"spec": {"elasticPolicy": {"rdzvConf": [{"key": 1}]}}})",
       "spec.elasticPolicy.rdzvConf[0].key must be a text"},
      {R"({"spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [{}, {"env": [1]}]}}}}}})",
       "spec.pytorchReplicaSpecs.Worker.template.spec.containers[1].env[0] must be an object, but is 1"},
      {R"({"spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"metadata": {"labels": {"": 1}}}}}}})",
       "template.metadata.labels. must be a text"},
  };
  for (const auto& [text, message] : rows) CHECK_THROWS_WITH(parse_job(Json::parse(text)), Contains(message));
}

TEST_CASE("set_defaults: policies, nprocPerNode and the port", "[api]") {
  const Job job = defaulted(Json::object());
  CHECK(job.spec.run_policy.clean_pod_policy == "None");
  CHECK(job.spec.nproc_per_node == "auto");
  CHECK(job.spec.replicas.at(ReplicaType::Worker).restart_policy == "OnFailure");
  const Json port{{{"name", "pytorchjob-port"}, {"containerPort", 23456}}};
  CHECK(ports_of(job, ReplicaType::Master) == port);
  CHECK(ports_of(job, ReplicaType::Worker) == port);
}

TEST_CASE("set_defaults: what is given stays, and other ports stay beside ours", "[api]") {
  const Job job = defaulted(Json::parse(R"({"spec": {"runPolicy": {"cleanPodPolicy": "All"}, "nprocPerNode": "2",
    "pytorchReplicaSpecs": {
      "Master": {"restartPolicy": "Never", "template": {"spec": {"containers": [
        {"name": "pytorch", "ports": [{"name": "pytorchjob-port", "containerPort": 1}]}]}}},
      "Worker": {"template": {"spec": {"containers": [
        {"name": "pytorch", "ports": [{"name": "web", "containerPort": 80}]}, {"name": "side"}]}}}}}})"));
  CHECK(job.spec.run_policy.clean_pod_policy == "All");
  CHECK(job.spec.nproc_per_node == "2");
  CHECK(job.spec.replicas.at(ReplicaType::Master).restart_policy == "Never");
  CHECK(ports_of(job, ReplicaType::Master) == Json::parse(R"([{"name": "pytorchjob-port", "containerPort": 1}])"));
  CHECK(ports_of(job, ReplicaType::Worker) ==
        Json::parse(R"([{"name": "web", "containerPort": 80}, {"name": "pytorchjob-port", "containerPort": 23456}])"));
  CHECK_FALSE(find(job.spec.replicas.at(ReplicaType::Worker).pod_template, "/spec/containers/1/ports"));
}

TEST_CASE("set_defaults: a meeting port is appended only where neither its name nor 23456/TCP is there", "[api]") {
  struct Row {
    const char* situation;
    const char* container;
    bool is_appended;
  };
  const auto row = GENERATE(values<Row>({
      {"no ports", R"({})", true},
      {"ports is null", R"({"ports": null})", true},
      {"another number", R"({"ports": [{"name": "web", "containerPort": 80}]})", true},
      {"the number under another name", R"({"ports": [{"name": "c10d", "containerPort": 23456}]})", false},
      {"the number without a name", R"({"ports": [{"containerPort": 23456}]})", false},
      {"the number, TCP in so many words", R"({"ports": [{"containerPort": 23456, "protocol": "TCP"}]})", false},
      {"the number behind others", R"({"ports": [{"containerPort": 80}, {"containerPort": 23456}]})", false},
      {"the number over UDP", R"({"ports": [{"name": "c10d", "containerPort": 23456, "protocol": "UDP"}]})", true},
      {"the name with another number", R"({"ports": [{"name": "pytorchjob-port", "containerPort": 9}]})", false},
  }));
  CAPTURE(row.situation);
  Json object = sample_job();
  Json& container = object["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["containers"][0];
  container.merge_patch(Json::parse(row.container));
  Json expected = container.value("ports", Json::array());
  if (row.is_appended) expected.push_back({{"name", "pytorchjob-port"}, {"containerPort", 23456}});
  Job job = parse_job(object);
  set_defaults(job);
  CHECK(ports_of(job, ReplicaType::Master) == expected);
}

TEST_CASE("set_defaults: elastic minimum and maximum copy each other, else the workers", "[api]") {
  struct Row {
    const char* policy;
    int least, most;
  };
  for (const Row& row : {Row{"{}", 3, 3}, Row{R"({"minReplicas": 2})", 2, 2}, Row{R"({"maxReplicas": 5})", 5, 5},
                         Row{R"({"minReplicas": 1, "maxReplicas": 4})", 1, 4}}) {
    const Job job = defaulted({{"spec", {{"elasticPolicy", Json::parse(row.policy)}}}});
    CHECK(job.spec.elastic->min_replicas == row.least);
    CHECK(job.spec.elastic->max_replicas == row.most);
    CHECK(job.spec.nproc_per_node == "auto");
  }
  CHECK_FALSE(defaulted(Json::parse(R"({"spec": {"elasticPolicy": {"nProcPerNode": 2}}})")).spec.nproc_per_node);
}

TEST_CASE("to_json: a status has the reference's names, leaves zeros out and is read back as it was", "[api]") {
  const Json written = to_json(full_status());
  CHECK(written["conditions"][1] ==
        Json::parse(R"({"type": "Running", "status": "False", "reason": "PyTorchJobFailed", "message": "m",
          "lastUpdateTime": "2026-11-21T10:00:01Z", "lastTransitionTime": "2026-11-21T10:00:02Z"})"));
  CHECK(written["replicaStatuses"] == Json::parse(R"({"Master": {"selector": "a=b"},
          "Worker": {"active": 1, "succeeded": 2, "failed": 3, "selector": "c=d"}})"));
  CHECK(written["startTime"] == "2026-11-21T10:00:03Z");
  CHECK(written["restarts"]["lastCause"]["exitCode"] == 137);
  CHECK(written["restarts"]["lastCause"]["container"] == "pytorch");
  CHECK(written["progress"]["silentRanks"] == Json{3, 5});
  CHECK(to_json(parse_job({{"status", written}}).status) == written);
}

TEST_CASE("to_json: an empty status is an empty object, and a replica type without pods stays as {}", "[api]") {
  CHECK(to_json(JobStatus{}) == Json::object());
  JobStatus status;
  status.replicas[ReplicaType::Worker] = {};
  CHECK(to_json(status) == Json::parse(R"({"replicaStatuses": {"Worker": {}}})"));
  CHECK(to_json(parse_status({{"status", to_json(status)}})) == to_json(status));
}

TEST_CASE("to_json: a gang that has formed shows its counts, zeros too", "[api]") {
  JobStatus status;
  status.restarts.formed = 2;
  CHECK(to_json(status)["restarts"] == Json::parse(R"({"count": 0, "disruptions": 0, "generation": 1, "formed": 2})"));
}

TEST_CASE("to_json: a loss that is no number is left out, as JSON has none", "[api]") {
  JobStatus status;
  status.progress = Progress{.step = 1, .loss = std::numeric_limits<double>::quiet_NaN()};
  CHECK_FALSE(to_json(status)["progress"].contains("loss"));
}

TEST_CASE("parse_status: what is of another type counts as absent", "[api]") {
  for (const char* const text :
       {R"({"status": 1})", R"({"status": {"conditions": {"a": 1}, "replicaStatuses": [], "restarts": "x"}})",
        R"({"status": {"conditions": [1, {}], "startTime": "yesterday", "progress": 3}})"}) {
    const Json json = Json::parse(text);
    CHECK(to_json(parse_job(json).status) == Json::object());
  }
}

TEST_CASE("to_json: the ranks that are done are written as ranges, and read back", "[api]") {
  JobStatus status;
  status.restarts.finished = {0, 1, 2, 7, 9, 10};
  const Json written = to_json(status);
  CHECK(written["restarts"]["finished"] == "0-2,7,9-10");
  CHECK(parse_status({{"status", written}}).restarts.finished == status.restarts.finished);
  for (const char* const text : {"x", "-", "3-", "-3", "1-99999999999", "5-2", ",,"})
    CHECK(parse_status({{"status", {{"restarts", {{"finished", text}}}}}}).restarts.finished.empty());
}

}  // namespace trainyard::api
