#include "metrics/prometheus_endpoint.h"

#include <fmt/format.h>
#include <microhttpd.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace trainyard::metrics {
namespace {

using prometheus::Gauge;
using prometheus::Registry;

using GaugeFamily = prometheus::Family<Gauge>;

/// It has no gauge, and so is not in the answer, until there is a value: 0 would be one.
GaugeFamily& family(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
Gauge& gauge(Registry& registry, const char* name, const char* help) {
  return family(registry, name, help).Add({});
}
void set(GaugeFamily& to, const std::optional<double>& value) {
  if (value) to.Add({}).Set(*value);
}

MHD_Result send(MHD_Connection* connection, unsigned status, std::string body) {
  MHD_Response* const response = MHD_create_response_from_buffer(body.size(), body.data(), MHD_RESPMEM_MUST_COPY);
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
  const MHD_Result result = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return result;
}

/// libmicrohttpd's callback; `registry` is a Registry. A body that comes with a request is not read.
MHD_Result answer(void* registry, MHD_Connection* connection, const char* url, const char* method, const char*,
                  const char*, size_t*, void**) {
  const std::string_view verb(method);
  if (verb != MHD_HTTP_METHOD_GET && verb != MHD_HTTP_METHOD_HEAD)
    return send(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET /metrics is all there is\n");
  if (std::string_view(url) != "/metrics") return send(connection, MHD_HTTP_NOT_FOUND, "only /metrics is here\n");
  return send(connection, MHD_HTTP_OK,
              prometheus::TextSerializer().Serialize(static_cast<Registry*>(registry)->Collect()));
}

/// One thread and a handful of connections, each with so little memory and so little time that strangers cost nothing.
/// (prometheus-cpp's own server cannot run here: its threads have stacks of 100 KiB, less than this program's
/// thread-local memory leaves.)
MHD_Daemon* serve(int64_t port, Registry& registry) {
  MHD_Daemon* const daemon = MHD_start_daemon(
      MHD_USE_INTERNAL_POLLING_THREAD, static_cast<uint16_t>(port), nullptr, nullptr, answer, &registry,
      MHD_OPTION_CONNECTION_LIMIT, 16U, MHD_OPTION_PER_IP_CONNECTION_LIMIT, 8U, MHD_OPTION_CONNECTION_TIMEOUT, 10U,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, size_t{16} << 10, MHD_OPTION_END);
  if (!daemon)
    throw InputError(fmt::format("metrics.port: cannot listen on port {}: {}; choose another, or 0 for none", port,
                                 std::strerror(errno)));
  return daemon;
}

struct Stop {
  void operator()(MHD_Daemon* daemon) const { MHD_stop_daemon(daemon); }
};

}  // namespace

struct PrometheusEndpoint::Families {
  Registry registry;
  Gauge& ranks = gauge(registry, "trainyard_ranks", "Ranks of the run");
  Gauge& step = gauge(registry, "trainyard_step", "Steps done");
  Gauge& total_steps = gauge(registry, "trainyard_total_steps", "Steps there will be");
  Gauge& last_step = gauge(registry, "trainyard_last_step_timestamp_seconds", "When the last step ended");
  Gauge& loss = gauge(registry, "trainyard_loss", "Mean loss of the last step's global batch");
  GaugeFamily& validation_loss = family(registry, "trainyard_validation_loss", "Loss of the last validation");
  Gauge& grad_norm = gauge(registry, "trainyard_grad_norm",
                           "Global L2 norm of the gradient before clipping; NaN: the step was skipped");
  Gauge& learning_rate = gauge(registry, "trainyard_learning_rate", "Learning rate of the last step");
  prometheus::Counter& tokens = prometheus::BuildCounter()
                                    .Name("trainyard_tokens_total")
                                    .Help("Valid targets since the start of training, also before a resume")
                                    .Register(registry)
                                    .Add({});
  Gauge& tokens_per_second = gauge(registry, "trainyard_tokens_per_second", "Of all ranks, in the last step");
  Gauge& samples_per_second = gauge(registry, "trainyard_samples_per_second", "Of all ranks, in the last step");
  GaugeFamily& mfu = family(registry, "trainyard_mfu_ratio", "Model FLOPs utilisation of the last step");
  Gauge& memory = gauge(registry, "trainyard_memory_bytes", "Resident memory of the rank that has most");
  Gauge& checkpoint = gauge(registry, "trainyard_checkpoint_step", "Step of the newest checkpoint; -1: none yet");
  GaugeFamily& parts = family(registry, "trainyard_step_seconds", "Where the time of the last step went");
  Gauge& data_wait = parts.Add({{"part", "data_wait"}});
  Gauge& compute = parts.Add({{"part", "compute"}});
  Gauge& communication = parts.Add({{"part", "communication_wait"}});
  Gauge& optimizer = parts.Add({{"part", "optimizer"}});
  Gauge& saving = parts.Add({{"part", "checkpoint"}});
  Gauge& slow_rank = gauge(registry, "trainyard_slow_rank", "The rank that the others wait for; -1: none");
  std::unique_ptr<MHD_Daemon, Stop> daemon;  // last: its thread reads all above
};

PrometheusEndpoint::PrometheusEndpoint(int64_t port, int ranks, int64_t total_steps)
    : families_(std::make_unique<Families>()) {
  families_->ranks.Set(ranks);
  families_->total_steps.Set(static_cast<double>(total_steps));
  families_->slow_rank.Set(-1);
  families_->daemon.reset(serve(port, families_->registry));
}

PrometheusEndpoint::~PrometheusEndpoint() = default;

void PrometheusEndpoint::step(const StepRecord& record) {
  Families& to = *families_;
  to.step.Set(static_cast<double>(record.step));
  to.last_step.Set(record.time);
  to.loss.Set(record.loss);
  set(to.validation_loss, record.validation_loss);
  to.grad_norm.Set(record.grad_norm.value_or(std::numeric_limits<double>::quiet_NaN()));
  to.learning_rate.Set(record.lr);
  to.tokens.Increment(static_cast<double>(record.tokens) - to.tokens.Value());
  to.tokens_per_second.Set(record.tokens_per_second);
  to.samples_per_second.Set(record.samples_per_second);
  set(to.mfu, record.mfu);
  to.memory.Set(static_cast<double>(record.memory_bytes));
  to.data_wait.Set(record.data_wait_ms / 1000);
  to.compute.Set(record.compute_ms / 1000);
  to.communication.Set(record.communication_wait_ms / 1000);
  to.optimizer.Set(record.optimizer_ms / 1000);
  to.saving.Set(record.checkpoint_ms / 1000);
  to.slow_rank.Set(record.slow_rank.value_or(-1));
}

void PrometheusEndpoint::checkpoint(int64_t step) {
  families_->checkpoint.Set(static_cast<double>(step));
}

}  // namespace trainyard::metrics
