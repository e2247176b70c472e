#include "telemetry/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <set>
#include <sstream>
#include <utility>

#include "common/mutex.h"
#include "telemetry/families.h"
#include "telemetry/process.h"

namespace trainyard::telemetry {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Labels;
using prometheus::Registry;

/// Seconds. From a decision in memory to a request that is about to time out.
const Histogram::BucketBoundaries kSeconds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                              0.25,   0.5,   1,      2.5,   5,    10,    30};

template <typename Builder>
auto& registered(Builder builder, Registry& registry, std::string_view name) {
  const Family& about = family(name);
  return builder.Name(std::string(about.name)).Help(std::string(about.help)).Register(registry);
}
auto& counters(Registry& registry, std::string_view name) {
  return registered(prometheus::BuildCounter(), registry, name);
}
auto& gauges(Registry& registry, std::string_view name) {
  return registered(prometheus::BuildGauge(), registry, name);
}
auto& histograms(Registry& registry, std::string_view name) {
  return registered(prometheus::BuildHistogram(), registry, name);
}

const char* name_of(JobEvent event) {
  switch (event) {
    case JobEvent::Created:
      return "training_operator_jobs_created_total";
    case JobEvent::Deleted:
      return "training_operator_jobs_deleted_total";
    case JobEvent::Successful:
      return "training_operator_jobs_successful_total";
    case JobEvent::Failed:
      return "training_operator_jobs_failed_total";
    case JobEvent::Restarted:
      return "training_operator_jobs_restarted_total";
  }
  return "";
}

using JobName = std::pair<std::string, std::string>;

Labels labels_of(const JobName& job) {
  return {{"job_namespace", job.first}, {"job_name", job.second}};
}

}  // namespace

struct Metrics::Content {
  Registry registry;
  prometheus::Family<Histogram>& reconcile = histograms(registry, "trainyard_operator_reconcile_seconds");
  Gauge& queue = gauges(registry, "trainyard_operator_queue_depth").Add({});
  prometheus::Family<Counter>& requests = counters(registry, "trainyard_operator_api_requests_total");
  prometheus::Family<Histogram>& request_time = histograms(registry, "trainyard_operator_api_request_seconds");
  Gauge& leader = gauges(registry, "trainyard_operator_leader").Add({});
  prometheus::Family<Gauge>& jobs = gauges(registry, "trainyard_operator_jobs");
  Gauge& pods = gauges(registry, "trainyard_operator_pods").Add({});
  prometheus::Family<Histogram>& admission = histograms(registry, "trainyard_operator_admission_seconds");
  Gauge& expiry = gauges(registry, "trainyard_operator_certificate_expiry_timestamp_seconds").Add({});
  prometheus::Family<Gauge>& step = gauges(registry, "trainyard_operator_job_step");
  prometheus::Family<Gauge>& total_steps = gauges(registry, "trainyard_operator_job_total_steps");
  prometheus::Family<Gauge>& loss = gauges(registry, "trainyard_operator_job_loss");
  prometheus::Family<Gauge>& tokens_per_second = gauges(registry, "trainyard_operator_job_tokens_per_second");
  prometheus::Family<Gauge>& checkpoint_step = gauges(registry, "trainyard_operator_job_checkpoint_step");
  Gauge& resident = gauges(registry, "process_resident_memory_bytes").Add({});
  Counter& cpu = counters(registry, "process_cpu_seconds_total").Add({});
  Gauge& open_files = gauges(registry, "process_open_fds").Add({});

  Mutex mutex;
  std::set<JobName> jobs_with_progress GUARDED_BY(mutex);
  std::set<std::string> states GUARDED_BY(mutex);
};

Metrics::Metrics() : content_(std::make_unique<Content>()) {}

Metrics::~Metrics() = default;

void Metrics::job(JobEvent event, const std::string& ns, int times) {
  if (times <= 0) return;
  counters(content_->registry, name_of(event)).Add({{"job_namespace", ns}, {"framework", "pytorch"}}).Increment(times);
}

void Metrics::reconciled(bool succeeded, std::chrono::duration<double> duration) {
  content_->reconcile.Add({{"result", succeeded ? "success" : "error"}}, kSeconds).Observe(duration.count());
}

void Metrics::queue_depth(size_t jobs) {
  content_->queue.Set(static_cast<double>(jobs));
}

void Metrics::api_request(const ApiRequest& request) {
  const Labels labels = {{"verb", request.verb}, {"resource", request.resource}};
  Labels with_code = labels;
  with_code.emplace("code", std::to_string(request.code));
  content_->requests.Add(with_code).Increment();
  if (request.verb != "watch") content_->request_time.Add(labels, kSeconds).Observe(request.duration.count());
}

void Metrics::leads(bool leads) {
  content_->leader.Set(leads ? 1 : 0);
}

void Metrics::jobs(const std::map<std::string, size_t>& states) {
  const MutexLock lock(content_->mutex);
  for (const auto& [state, count] : states) content_->states.insert(state);
  for (const std::string& state : content_->states) {
    const auto found = states.find(state);
    content_->jobs.Add({{"state", state}}).Set(found == states.end() ? 0 : static_cast<double>(found->second));
  }
}

void Metrics::pods(size_t pods) {
  content_->pods.Set(static_cast<double>(pods));
}

void Metrics::reviewed(bool allowed, std::chrono::duration<double> duration) {
  content_->admission.Add({{"allowed", allowed ? "true" : "false"}}, kSeconds).Observe(duration.count());
}

void Metrics::certificate_expires(TimePoint time) {
  content_->expiry.Set(std::chrono::duration<double>(time.time_since_epoch()).count());
}

void Metrics::progress(const std::string& ns, const std::string& name, const api::Progress& progress) {
  const JobName job{ns, name};
  const MutexLock lock(content_->mutex);
  auto& known = content_->jobs_with_progress;
  if (!known.contains(job) && known.size() >= kMostJobsWithProgress) return;
  known.insert(job);
  const Labels labels = labels_of(job);
  content_->step.Add(labels).Set(static_cast<double>(progress.step));
  content_->total_steps.Add(labels).Set(static_cast<double>(progress.total_steps));
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();  // as Prometheus writes it
  content_->loss.Add(labels).Set(progress.loss.value_or(kUnknown));
  content_->tokens_per_second.Add(labels).Set(progress.tokens_per_second.value_or(kUnknown));
  content_->checkpoint_step.Add(labels).Set(static_cast<double>(progress.checkpoint_step));
}

void Metrics::forget(const std::string& ns, const std::string& name) {
  const JobName job{ns, name};
  const MutexLock lock(content_->mutex);
  if (content_->jobs_with_progress.erase(job) == 0) return;
  for (auto* const gauge : {&content_->step, &content_->total_steps, &content_->loss, &content_->tokens_per_second,
                            &content_->checkpoint_step})
    gauge->Remove(&gauge->Add(labels_of(job)));
}

std::string Metrics::text() const {
  const ProcessUse use = process_use();
  {
    const MutexLock lock(content_->mutex);
    content_->resident.Set(use.resident_bytes);
    content_->open_files.Set(static_cast<double>(use.open_files));
    if (use.cpu_seconds > content_->cpu.Value()) content_->cpu.Increment(use.cpu_seconds - content_->cpu.Value());
  }
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, content_->registry.Collect());
  return text.str();
}

}  // namespace trainyard::telemetry
