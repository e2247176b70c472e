#pragma once

#include <chrono>
#include <map>
#include <string>

#include "common/mutex.h"
#include "http/message.h"
#include "telemetry/metrics.h"

namespace trainyard::telemetry {

/// What /healthz and /readyz tell. All methods from any thread.
class Probes {
 public:
  using Clock = std::chrono::steady_clock;
  /// A loop that has not beaten for so long hangs; the kubelet restarts the container.
  static constexpr std::chrono::seconds kHangsAfter{60};

  /// The loop that does the work is turning. Until it first does, the operator is alive but not ready.
  void beat(Clock::time_point now);
  /// "caches", "webhook": each that was named must be ready.
  void set_ready(const std::string& part, bool ready);

  /// /healthz and /readyz; 404 for other paths, 405 for other methods.
  [[nodiscard]] http::Response answer(const http::Request& request, Clock::time_point now) const;

 private:
  [[nodiscard]] http::Response health(Clock::time_point now) const REQUIRES(mutex_);
  [[nodiscard]] http::Response readiness() const REQUIRES(mutex_);

  mutable Mutex mutex_;
  Clock::time_point beat_ GUARDED_BY(mutex_);
  bool has_beaten_ GUARDED_BY(mutex_) = false;
  std::map<std::string, bool> parts_ GUARDED_BY(mutex_);
};

/// What --health-probe-bind-address serves. `probes` outlives the handler.
[[nodiscard]] http::Handler probe_handler(const Probes& probes);

/// What --metrics-bind-address serves: /metrics. `metrics` outlives the handler.
[[nodiscard]] http::Handler metrics_handler(const Metrics& metrics);

}  // namespace trainyard::telemetry
