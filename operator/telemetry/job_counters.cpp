#include "telemetry/job_counters.h"

namespace trainyard::telemetry {

void JobCounters::count(const std::string& ns, const controller::JobCounts& counts) {
  metrics_.job(JobEvent::Created, ns, counts.created);
  metrics_.job(JobEvent::Successful, ns, counts.successful);
  metrics_.job(JobEvent::Failed, ns, counts.failed);
  metrics_.job(JobEvent::Restarted, ns, counts.restarted);
}

void JobCounters::count_deleted(const std::string& ns) {
  metrics_.job(JobEvent::Deleted, ns);
}

void JobCounters::observe_reconcile(double seconds, bool succeeded) {
  metrics_.reconciled(succeeded, std::chrono::duration<double>(seconds));
}

}  // namespace trainyard::telemetry
