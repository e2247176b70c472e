#include "telemetry/progress_endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "http/json_body.h"
#include "telemetry/progress_body.h"

namespace trainyard::telemetry {
namespace {

/// "/progress/team/llama" -> {team, llama}
std::optional<std::pair<std::string, std::string>> job_of(std::string_view path) {
  constexpr std::string_view kPrefix = "/progress/";
  if (!path.starts_with(kPrefix)) return std::nullopt;
  path.remove_prefix(kPrefix.size());
  const auto slash = path.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == path.size()) return std::nullopt;
  const std::string_view name = path.substr(slash + 1);
  if (name.find('/') != std::string_view::npos) return std::nullopt;
  return std::pair(std::string(path.substr(0, slash)), std::string(name));
}

}  // namespace

void ProgressEndpoint::set_leading(bool leading) {
  const std::lock_guard lock(mutex_);
  is_leading_ = leading;
}

void ProgressEndpoint::set_key(OperatorKey key) {
  const std::lock_guard lock(mutex_);
  key_ = std::move(key);
}

void ProgressEndpoint::track(const std::string& ns, const std::string& name, const TrackedJob& job,
                             const std::optional<api::Progress>& known) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = jobs_.try_emplace({ns, name}, Entry{.job = job, .last = known});
  Entry& entry = found->second;
  if (is_new) return;
  if (entry.job.uid != job.uid || entry.job.generation != job.generation) entry.last.reset();
  entry.job = job;
}

void ProgressEndpoint::forget(const std::string& ns, const std::string& name) {
  const std::lock_guard lock(mutex_);
  jobs_.erase({ns, name});
}

http::Response ProgressEndpoint::answer(const http::Request& request, Clock::time_point now, TimePoint time) {
  const auto job = job_of(request.path);
  if (!job) return {.status = 404, .body = "there is nothing here; progress goes to /progress/<namespace>/<job>\n"};
  if (request.method != "POST") return {.status = 405, .body = "POST only\n"};
  if (auto refusal = refuse(request, *job, now)) return *refusal;
  try {
    Post post = parse_post(request.body, time);
    if (auto refusal = take(*job, post.generation, post.progress)) return *refusal;
    on_progress_(job->first, job->second, post.progress);
    return {.status = 204};
  } catch (const http::BadBody& error) {
    return {.status = 400, .body = fmt::format("{}\n", error.what())};
  }
}

/// Who may not post, or not now. A post counts against the job's rate only with the job's token: nobody else can use
/// it up.
std::optional<http::Response> ProgressEndpoint::refuse(const http::Request& request, const JobName& job,
                                                       Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (!is_leading_)
    return http::Response{
        .status = 503, .body = "another replica leads; try again\n", .retry_after_seconds = 1, .close = true};
  if (request.bearer.empty()) return http::Response{.status = 401, .body = "a Bearer token is expected\n"};
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return http::Response{.status = 404, .body = "no such job\n"};
  Entry& entry = found->second;
  if (!is_same_token(request.bearer, job_token(key_, job.first, job.second, entry.job.uid)))
    return http::Response{.status = 403, .body = "not with this token\n"};
  if (!spend(entry, now))
    return http::Response{.status = 429, .body = "one post a second at most\n", .retry_after_seconds = 1};
  return std::nullopt;
}

bool ProgressEndpoint::spend(Entry& entry, Clock::time_point now) {
  const double passed = std::chrono::duration<double>(now - entry.counted).count();
  entry.allowance = std::min(entry.allowance + std::max(passed, 0.0), kBurst);
  entry.counted = now;
  if (entry.allowance < 1) return false;
  entry.allowance -= 1;
  return true;
}

/// Remembers it as the job's last, and completes it with when the job last moved.
std::optional<http::Response> ProgressEndpoint::take(const JobName& job, std::optional<int64_t> generation,
                                                     api::Progress& progress) {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return http::Response{.status = 404, .body = "no such job\n"};
  Entry& entry = found->second;
  if (generation && *generation != entry.job.generation)
    return http::Response{.status = 409,
                          .body = fmt::format("posted by generation {}; the job is at generation {}\n", *generation,
                                              entry.job.generation)};
  // A step that went back is a gang that began again at its checkpoint: that moves, too.
  if (entry.last && entry.last->step == progress.step) progress.advanced = entry.last->advanced;
  entry.last = progress;
  return std::nullopt;
}

http::Handler progress_handler(ProgressEndpoint& endpoint) {
  return [&endpoint](const http::Request& request) {
    return endpoint.answer(request, ProgressEndpoint::Clock::now(), std::chrono::system_clock::now());
  };
}

}  // namespace trainyard::telemetry
