#include "telemetry/progress_endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "common/hmac.h"
#include "http/json_body.h"
#include "telemetry/progress_body.h"

namespace trainyard::telemetry {
namespace {

constexpr size_t kNonceDigits = 64;

struct Target {
  std::pair<std::string, std::string> job;
  bool wants_authorities = false;
};

/// "/progress/team/llama" -> {team, llama}; with "/authorities" behind it, what is asked is who signs.
std::optional<Target> target_of(std::string_view path) {
  constexpr std::string_view kPrefix = "/progress/", kAuthorities = "/authorities";
  if (!path.starts_with(kPrefix)) return std::nullopt;
  path.remove_prefix(kPrefix.size());
  const bool wants_authorities = std::ranges::count(path, '/') == 2 && path.ends_with(kAuthorities);
  if (wants_authorities) path.remove_suffix(kAuthorities.size());
  const auto slash = path.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == path.size()) return std::nullopt;
  const std::string_view name = path.substr(slash + 1);
  if (name.find('/') != std::string_view::npos) return std::nullopt;
  return Target{{std::string(path.substr(0, slash)), std::string(name)}, wants_authorities};
}

bool is_nonce(const std::string& text) {
  return text.size() == kNonceDigits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

void ProgressEndpoint::set_leading(bool leading) {
  const MutexLock lock(mutex_);
  is_leading_ = leading;
}

void ProgressEndpoint::set_trust(OperatorKey key, std::string authorities) {
  const MutexLock lock(mutex_);
  key_ = std::move(key);
  authorities_ = std::move(authorities);
}

void ProgressEndpoint::track(const std::string& ns, const std::string& name, const TrackedJob& job,
                             const std::optional<api::Progress>& known) {
  const MutexLock lock(mutex_);
  const auto [found, is_new] = jobs_.try_emplace({ns, name}, Entry{.job = job, .known = known});
  Entry& entry = found->second;
  if (is_new) return;
  if (entry.job.uid != job.uid || entry.job.generation != job.generation) {
    entry.known.reset();
    entry.last.reset();
  }
  entry.job = job;
}

void ProgressEndpoint::forget(const std::string& ns, const std::string& name) {
  const MutexLock lock(mutex_);
  jobs_.erase({ns, name});
}

http::Response ProgressEndpoint::answer(const http::Request& request, Clock::time_point now, TimePoint time) {
  const auto target = target_of(request.path);
  if (!target) return {.status = 404, .body = "there is nothing here; progress goes to /progress/<namespace>/<job>\n"};
  if (request.method != "POST") return {.status = 405, .body = "POST only\n"};
  if (target->wants_authorities) return prove_authorities(target->job, request.body);
  const JobName& job = target->job;
  if (auto refusal = refuse(request, job, now)) return *refusal;
  try {
    api::ProgressPost post = parse_post(request.body, time);
    if (auto refusal = take(job, post)) return *refusal;
    on_post_(job.first, job.second, post);
    return {.status = 204};
  } catch (const http::BadBody& error) {
    if (const auto last = last_refusing(job, error.what(), time)) on_post_(job.first, job.second, *last);
    return {.status = 400, .body = fmt::format("{}\n", error.what())};
  }
}

http::Response ProgressEndpoint::prove_authorities(const JobName& job, const std::string& nonce) {
  if (!is_nonce(nonce))
    return {.status = 400, .body = fmt::format("the body is no nonce of {} hex digits\n", kNonceDigits)};
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return {.status = 404, .body = "no such job\n"};
  const std::string token = job_token(key_, job.first, job.second, found->second.job.uid);
  return {.body = dump({{"authorities", authorities_}, {"proof", authorities_proof(token, nonce, authorities_)}}),
          .content_type = "application/json"};
}

/// Who may not post, or not now. A post counts against the job's rate only with the job's token: nobody else can use
/// it up.
std::optional<http::Response> ProgressEndpoint::refuse(const http::Request& request, const JobName& job,
                                                       Clock::time_point now) {
  const MutexLock lock(mutex_);
  if (!is_leading_)
    return http::Response{
        .status = 503, .body = "another replica leads; try again\n", .retry_after_seconds = 1, .close = true};
  if (request.bearer.empty()) return http::Response{.status = 401, .body = "a Bearer token is expected\n"};
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return http::Response{.status = 404, .body = "no such job\n"};
  Entry& entry = found->second;
  if (!is_same_secret(request.bearer, job_token(key_, job.first, job.second, entry.job.uid)))
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

/// Remembers it as the job's last, and completes it with whose it is and when the job last moved.
std::optional<http::Response> ProgressEndpoint::take(const JobName& job, api::ProgressPost& post) {
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return http::Response{.status = 404, .body = "no such job\n"};
  Entry& entry = found->second;
  if (post.generation && *post.generation != entry.job.generation)
    return http::Response{.status = 409,
                          .body = fmt::format("posted by generation {}; the job is at generation {}\n",
                                              *post.generation, entry.job.generation)};
  post.generation = entry.job.generation;
  const api::Progress* const before = entry.last ? &entry.last->progress : entry.known ? &*entry.known : nullptr;
  if (before) post.seconds_a_step = entry.last ? entry.last->seconds_a_step : 0;
  // A step that went back is a gang that began again at its checkpoint: that moves, too.
  if (before && before->step == post.progress.step) {
    post.progress.advanced = before->advanced;
  } else if (before && before->step < post.progress.step) {
    const std::chrono::duration<double> passed = post.progress.advanced - before->advanced;
    post.seconds_a_step = passed.count() / static_cast<double>(post.progress.step - before->step);
  }
  entry.last = post;
  return std::nullopt;
}

/// None where nothing has been taken yet, or the same has been told of already.
std::optional<api::ProgressPost> ProgressEndpoint::last_refusing(const JobName& job, const std::string& why,
                                                                 TimePoint time) {
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return std::nullopt;
  auto& last = found->second.last;
  if (!last) {
    last.emplace().progress = found->second.known.value_or(api::Progress());
    last->generation = found->second.job.generation;
    last->progress.updated = time;
  }
  if (last->refusal == why) return std::nullopt;
  last->refusal = why;
  return last;
}

http::Handler progress_handler(ProgressEndpoint& endpoint) {
  return [&endpoint](const http::Request& request) {
    return endpoint.answer(request, ProgressEndpoint::Clock::now(), std::chrono::system_clock::now());
  };
}

}  // namespace trainyard::telemetry
