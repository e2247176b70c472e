#pragma once

#include <string>

#include "api/job.h"

namespace trainyard::controller {

/// What users' dashboards count, by namespace.
struct JobCounts {
  int created = 0, successful = 0, failed = 0, restarted = 0;
};

/// What a change of a job's status adds.
[[nodiscard]] JobCounts counts_between(const api::JobStatus& before, const api::JobStatus& after);

/// Where events of the controller are counted: telemetry/ implements it, and a null one serves where nobody looks.
class Counters {
 public:
  virtual ~Counters() = default;
  virtual void count(const std::string& ns, const JobCounts& counts) = 0;
  virtual void count_deleted(const std::string& ns) = 0;
  virtual void observe_reconcile(double seconds, bool succeeded) = 0;
};

}  // namespace trainyard::controller
