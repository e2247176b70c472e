#include "telemetry/families.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

namespace trainyard::telemetry {
namespace {

constexpr std::array kFamilies = {
    // The reference's, with its names and labels: dashboards have them.
    Family{"training_operator_jobs_created_total", Type::Counter, "job_namespace, framework", "Jobs created"},
    Family{"training_operator_jobs_deleted_total", Type::Counter, "job_namespace, framework", "Jobs deleted"},
    Family{"training_operator_jobs_successful_total", Type::Counter, "job_namespace, framework", "Jobs that succeeded"},
    Family{"training_operator_jobs_failed_total", Type::Counter, "job_namespace, framework", "Jobs that failed"},
    Family{"training_operator_jobs_restarted_total", Type::Counter, "job_namespace, framework",
           "Restarts of jobs, each counted once"},
    // Ours.
    Family{"trainyard_operator_reconcile_seconds", Type::Histogram, "result",
           "Time to decide on one job and to act; result is success or error"},
    Family{"trainyard_operator_queue_depth", Type::Gauge, "", "Jobs that wait for their turn"},
    Family{"trainyard_operator_api_requests_total", Type::Counter, "verb, resource, code",
           "Answers of the API server, watches at their end; code 0: none came"},
    Family{"trainyard_operator_api_request_seconds", Type::Histogram, "verb, resource",
           "Time from sending a request to the end of its answer, without watches"},
    Family{"trainyard_operator_leader", Type::Gauge, "", "1 while this replica leads"},
    Family{"trainyard_operator_jobs", Type::Gauge, "state", "Jobs by the type of their last condition"},
    Family{"trainyard_operator_pods", Type::Gauge, "", "Pods of jobs that this replica sees"},
    Family{"trainyard_operator_admission_seconds", Type::Histogram, "allowed", "Time to answer an AdmissionReview"},
    Family{"trainyard_operator_certificate_expiry_timestamp_seconds", Type::Gauge, "",
           "When the serving certificate expires, in seconds since 1970"},
    Family{"trainyard_operator_job_step", Type::Gauge, "job_namespace, job_name", "Steps that rank 0 has reported"},
    Family{"trainyard_operator_job_total_steps", Type::Gauge, "job_namespace, job_name", "Steps there will be"},
    Family{"trainyard_operator_job_loss", Type::Gauge, "job_namespace, job_name", "Loss of the last step reported"},
    Family{"trainyard_operator_job_tokens_per_second", Type::Gauge, "job_namespace, job_name",
           "Tokens of all ranks together"},
    Family{"trainyard_operator_job_checkpoint_step", Type::Gauge, "job_namespace, job_name",
           "Step of the newest checkpoint; -1: none yet"},
    // The names are those that every Prometheus client gives them.
    Family{"process_resident_memory_bytes", Type::Gauge, "", "Resident memory of the operator"},
    Family{"process_cpu_seconds_total", Type::Counter, "", "CPU time of the operator, user and system"},
    Family{"process_open_fds", Type::Gauge, "", "Open files of the operator"},
};

}  // namespace

std::span<const Family> families() {
  return kFamilies;
}

const Family& family(std::string_view name) {
  const auto* const found = std::ranges::find(kFamilies, name, &Family::name);
  if (found == kFamilies.end()) throw std::logic_error("no metric is called " + std::string(name));
  return *found;
}

}  // namespace trainyard::telemetry
