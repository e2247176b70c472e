#pragma once

#include "controller/counters.h"
#include "telemetry/metrics.h"

namespace trainyard::telemetry {

/// What the controller counts, in the metrics.
class JobCounters : public controller::Counters {
 public:
  /// `metrics` outlives it.
  explicit JobCounters(Metrics& metrics) : metrics_(metrics) {}
  void count(const std::string& ns, const controller::JobCounts& counts) override;
  void count_deleted(const std::string& ns) override;
  void observe_reconcile(double seconds, bool succeeded) override;

 private:
  Metrics& metrics_;
};

}  // namespace trainyard::telemetry
