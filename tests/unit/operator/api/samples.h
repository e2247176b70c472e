#pragma once

#include "api/job.h"

namespace trainyard::api {

/// A master and three workers, as short as the webhook accepts.
inline Json sample_job() {
  return Json::parse(R"({
    "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "valid", "namespace": "team"},
    "spec": {"pytorchReplicaSpecs": {
      "Master": {"replicas": 1, "template": {"spec": {"containers": [{"name": "pytorch", "image": "i"}]}}},
      "Worker": {"replicas": 3, "template": {"spec": {"containers": [{"name": "pytorch", "image": "i"}]}}}}}})");
}

inline TimePoint moment(const char* text) {
  return *parse_time(text);
}

/// A status with every field that there is.
inline JobStatus full_status() {
  JobStatus status;
  status.conditions = {
      {"Created", true, "PyTorchJobCreated", "PyTorchJob x is created.", moment("2026-11-21T10:00:00Z"),
       moment("2026-11-21T10:00:00Z")},
      {"Running", false, "PyTorchJobFailed", "m", moment("2026-11-21T10:00:01Z"), moment("2026-11-21T10:00:02Z")}};
  status.replicas[ReplicaType::Master] = {0, 0, 0, "a=b"};
  status.replicas[ReplicaType::Worker] = {1, 2, 3, "c=d"};
  status.start_time = moment("2026-11-21T10:00:03Z");
  status.completion_time = moment("2026-11-21T10:00:04Z");
  status.last_reconcile_time = moment("2026-11-21T10:00:05Z");
  status.restarts = {.count = 2,
                     .forgiven = 1,
                     .disruptions = 1,
                     .generation = 4,
                     .last_cause = RestartCause{"llama-worker-1", "node-7", 137, "OOMKilled", "out of memory",
                                                moment("2026-11-21T10:00:06Z"), "pytorch"},
                     .streak = 2,
                     .not_before = moment("2026-11-21T10:00:07Z"),
                     .checkpoint_step = 50,
                     .formed = 3,
                     .avoid_nodes = {"node-3"},
                     .restarting_pods = {"uid-1", "uid-2"}};
  status.progress = Progress{.step = 60,
                             .total_steps = 100,
                             .loss = 2.5,
                             .tokens_per_second = 1234,
                             .checkpoint_step = 50,
                             .silent_ranks = {3, 5},
                             .eta = "1 h 25 min",
                             .updated = moment("2026-11-21T10:00:08Z"),
                             .advanced = moment("2026-11-21T10:00:09Z")};
  return status;
}

}  // namespace trainyard::api
