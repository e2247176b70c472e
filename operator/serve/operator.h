#pragma once

#include <memory>
#include <string>

#include "controller/reconciler.h"
#include "http/server.h"
#include "kube/elector.h"
#include "serve/complaints.h"
#include "serve/options.h"
#include "telemetry/metrics.h"
#include "telemetry/probes.h"
#include "telemetry/progress_endpoint.h"
#include "webhook/certificate_keeper.h"

namespace trainyard::serve {

/// The operator as it runs in a cluster: the API client, the controller, leader election, the webhook, and the servers
/// for metrics and probes, on one loop. Nothing but wiring.
class Operator {
 public:
  /// Listens on its ports. Throws http::ListenError or kube::ConfigError where it was told something that cannot be.
  explicit Operator(Options options);
  ~Operator();
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  /// Runs until SIGTERM or SIGINT, and then gives the lease back.
  void run();

 private:
  class JobCounters;

  [[nodiscard]] http::Response answer(const http::Request& request);
  void watch_signals();
  void stop();
  void use(const webhook::Material& material);
  void lead_when_ready();
  void change_lead(bool leads);
  void follow_job(const controller::WatchedJob* before, const controller::WatchedJob* after);
  void tick();
  void report_states();
  void trouble(const std::string& what, const kube::ApiError& error);
  void observe(const kube::Exchange& one);

  Options options_;
  kube::Config config_;
  std::string own_ns_;
  UniqueFd webhook_listener_;
  telemetry::Metrics metrics_;
  telemetry::Probes probes_;
  Complaints complaints_;
  kube::EventLoop loop_;
  kube::Client client_;
  kube::EventRecorder events_;
  std::unique_ptr<JobCounters> counters_;
  OperatorKey key_;
  telemetry::ProgressEndpoint progress_;
  std::unique_ptr<controller::Reconciler> reconciler_;
  std::unique_ptr<kube::Elector> elector_;
  std::unique_ptr<webhook::KubeCertificateStore> certificate_store_;
  std::unique_ptr<webhook::CertificateKeeper> certificates_;
  http::Handler review_;
  std::unique_ptr<http::Server> metrics_server_, health_server_, webhook_server_;
  UniqueFd signals_;
  bool has_lease_ = false, has_key_ = false, is_leading_ = false, is_stopping_ = false;
};

}  // namespace trainyard::serve
