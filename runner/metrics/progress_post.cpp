#include "metrics/progress_post.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "metrics/progress_authorities.h"
#include "metrics/web_post.h"

namespace trainyard::metrics {
namespace {

constexpr std::chrono::milliseconds kLeastGap{1000};  // the operator takes no more than one a second
constexpr size_t kMostSilentRanks = 256;  // as many as the operator takes
constexpr size_t kMostAnswer = 200;       // bytes of it, for the log
constexpr size_t kMostText = 512;         // bytes of what is wrong
constexpr int kMostReplicas = 8;          // asked one after the other for the one that leads

}  // namespace

std::string to_json(const JobProgress& progress, int64_t generation, int world_size) {
  nlohmann::json json = {{"step", progress.step},
                         {"totalSteps", progress.total_steps},
                         {"checkpointStep", progress.checkpoint_step},
                         {"silentRanks", progress.silent_ranks}};
  if (progress.loss && std::isfinite(*progress.loss)) json["loss"] = *progress.loss;
  if (progress.tokens_per_second > 0) json["tokensPerSecond"] = progress.tokens_per_second;
  if (!progress.checkpoint_error.empty()) json["checkpointError"] = progress.checkpoint_error.substr(0, kMostText);
  if (!progress.metrics_error.empty()) json["metricsError"] = progress.metrics_error.substr(0, kMostText);
  if (!progress.config_changed.empty()) json["configChanged"] = progress.config_changed.substr(0, kMostText);
  if (generation > 0) json["generation"] = generation;
  if (world_size > 0) json["worldSize"] = world_size;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);  // a path may be cut amid a character
}

/// Where posts go: one address, and whom to trust there.
class ProgressPoster::Connection {
 public:
  explicit Connection(const ProgressTarget& target)
      : target_(target),
        authorities_(target.ca),
        web_(target.url, {"Authorization: Bearer " + target.token, "Content-Type: application/json"}, kMostAnswer) {
    web_.trust(authorities_);
  }

  /// Empty where the operator has taken it, else what happened.
  std::string post(const std::string& body, std::chrono::milliseconds timeout, const std::stop_token& call_off);

 private:
  std::string trust_anew(std::chrono::milliseconds timeout, const std::stop_token& call_off);

  const ProgressTarget& target_;
  std::string authorities_;
  WebPost web_;
};

std::string ProgressPoster::Connection::post(const std::string& body, std::chrono::milliseconds timeout,
                                             const std::stop_token& call_off) {
  std::string failure;
  for (int i = 0; i < kMostReplicas; ++i) {
    const WebPost::Answer answer = web_.send(body, timeout, call_off);
    if (answer.is_taken()) return "";
    failure = answer.failure();
    if (answer.is_distrusted) {
      const std::string doubt = trust_anew(timeout, call_off);
      if (!doubt.empty()) return fmt::format("{}, and {}", failure, doubt);
    } else if (answer.status != 503) {
      break;  // 503: this replica does not lead; another connection may come to the one that does
    }
  }
  return failure;
}

/// Empty where the server has proven another authority than the one that was trusted.
std::string ProgressPoster::Connection::trust_anew(std::chrono::milliseconds timeout, const std::stop_token& call_off) {
  try {
    std::string learned = learn_authorities(target_.url + "/authorities", target_.token, timeout, call_off);
    if (learned == authorities_) return "the operator has no other authority";
    authorities_ = std::move(learned);
    web_.trust(authorities_);
    spdlog::info("the operator has another certificate authority, proven with this job's token");
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

ProgressPoster::ProgressPoster(ProgressTarget target, JobProgress begin, std::function<std::vector<int>()> silent_ranks,
                               ConfigWatch config)
    : target_(std::move(target)),
      silent_ranks_(std::move(silent_ranks)),
      config_(std::move(config)),
      connection_(std::make_unique<Connection>(target_)),
      newest_(std::move(begin)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

ProgressPoster::~ProgressPoster() = default;

void ProgressPoster::step(int64_t step, double loss, double tokens_per_second) {
  const MutexLock lock(mutex_);
  newest_.step = step;
  newest_.loss = loss;
  newest_.tokens_per_second = tokens_per_second;
}

void ProgressPoster::checkpoint(int64_t step) {
  const MutexLock lock(mutex_);
  newest_.checkpoint_step = step;
  newest_.checkpoint_error.clear();
  is_urgent_ = true;
  changed_.notify_one();
}

void ProgressPoster::checkpoint_failed(const std::string& why) {
  const MutexLock lock(mutex_);
  is_urgent_ |= newest_.checkpoint_error != why;
  newest_.checkpoint_error = why;
  changed_.notify_one();
}

void ProgressPoster::metrics_file(const std::string& error) {
  const MutexLock lock(mutex_);
  newest_.metrics_error = error;
}

void ProgressPoster::run(const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  const auto is_urgent = [this]() REQUIRES(mutex_) { return is_urgent_; };
  for (;;) {
    const bool is_last = stop.stop_requested();
    is_urgent_ = false;
    {
      const JobProgress progress = newest_;
      const MutexUnlock unlocked(mutex_);
      post(progress, is_last, is_last ? target_.last_words : target_.timeout, is_last ? std::stop_token() : stop);
    }
    if (is_last) return;
    const auto gap = std::min(kLeastGap, target_.interval);
    changed_.wait_for(mutex_, stop, gap, [] { return false; });  // nothing but the end cuts this short
    changed_.wait_for(mutex_, stop, target_.interval - gap, is_urgent);
  }
}

std::vector<int> ProgressPoster::silent_ranks() const {
  try {
    std::vector<int> ranks = silent_ranks_ ? silent_ranks_() : std::vector<int>();
    ranks.resize(std::min(ranks.size(), kMostSilentRanks));
    return ranks;
  } catch (const std::exception&) {  // the store is closing: who was silent before is what it closes for
    return posted_ ? posted_->silent_ranks : std::vector<int>();
  }
}

void ProgressPoster::post(JobProgress progress, bool is_last, std::chrono::milliseconds timeout,
                          const std::stop_token& stop) {
  progress.silent_ranks = silent_ranks();
  progress.config_changed = config_.changed();
  if (is_last && posted_ == progress) return;
  const std::string body = to_json(progress, target_.generation, target_.world_size);
  const std::string failure = connection_->post(body, timeout, stop);
  if (failure.empty()) posted_ = progress;
  if (!stop.stop_requested()) note(failure);
}

void ProgressPoster::note(const std::string& failure) {
  if (is_failing_ == !failure.empty()) return;
  is_failing_ = !failure.empty();
  if (is_failing_) {
    spdlog::warn("the operator does not take this job's progress at {}: {}; training goes on", target_.url, failure);
  } else {
    spdlog::info("the operator takes this job's progress again");
  }
}

}  // namespace trainyard::metrics
