#include "telemetry/probes.h"

#include <fmt/format.h>

namespace trainyard::telemetry {
namespace {

http::Response not_found(const char* what_there_is) {
  return {.status = 404, .body = fmt::format("there is nothing here; {}\n", what_there_is)};
}

http::Response only_get() {
  return {.status = 405, .body = "GET only\n"};
}

}  // namespace

void Probes::beat(Clock::time_point now) {
  const MutexLock lock(mutex_);
  beat_ = now;
  has_beaten_ = true;
}

void Probes::set_ready(const std::string& part, bool ready) {
  const MutexLock lock(mutex_);
  parts_[part] = ready;
}

http::Response Probes::answer(const http::Request& request, Clock::time_point now) const {
  if (request.path != "/healthz" && request.path != "/readyz") return not_found("try /healthz or /readyz");
  if (request.method != "GET") return only_get();
  const MutexLock lock(mutex_);
  return request.path == "/healthz" ? health(now) : readiness();
}

http::Response Probes::health(Clock::time_point now) const {
  if (!has_beaten_ || now - beat_ < kHangsAfter) return {.body = "ok\n"};
  const auto silence = std::chrono::duration_cast<std::chrono::seconds>(now - beat_);
  return {.status = 500, .body = fmt::format("the operator's loop has not turned for {} s\n", silence.count())};
}

http::Response Probes::readiness() const {
  std::string missing = has_beaten_ ? "" : " loop";
  for (const auto& [part, ready] : parts_)
    if (!ready) missing += " " + part;
  if (missing.empty()) return {.body = "ok\n"};
  return {.status = 503, .body = fmt::format("not ready yet:{}\n", missing)};
}

http::Handler probe_handler(const Probes& probes) {
  return [&probes](const http::Request& request) { return probes.answer(request, Probes::Clock::now()); };
}

http::Handler metrics_handler(const Metrics& metrics) {
  return [&metrics](const http::Request& request) -> http::Response {
    if (request.path != "/metrics") return not_found("try /metrics");
    if (request.method != "GET") return only_get();
    return {.body = metrics.text(), .content_type = "text/plain; version=0.0.4; charset=utf-8"};
  };
}

}  // namespace trainyard::telemetry
