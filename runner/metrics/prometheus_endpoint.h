#pragma once

#include <cstdint>
#include <memory>

#include "metrics/step_record.h"

namespace trainyard::metrics {

/// `http://…:port/metrics` in Prometheus' text format (docs/observability.md), on a thread of its own. Whoever reaches
/// the port may read; nothing can be written there. Rank 0's; one thread calls.
class PrometheusEndpoint {
 public:
  /// Throws InputError where the port is taken.
  PrometheusEndpoint(int64_t port, int ranks, int64_t total_steps);
  ~PrometheusEndpoint();
  PrometheusEndpoint(const PrometheusEndpoint&) = delete;
  PrometheusEndpoint& operator=(const PrometheusEndpoint&) = delete;

  void step(const StepRecord& record);
  /// A checkpoint of this step is committed; -1: there is none.
  void checkpoint(int64_t step);

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace trainyard::metrics
