#include "metrics/progress_post.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace trainyard::metrics {
namespace {

constexpr std::chrono::milliseconds kLeastGap{1000};  // the operator takes no more than one a second
constexpr std::chrono::milliseconds kConnectTimeout{3000};
constexpr size_t kMostSilentRanks = 256;  // as many as the operator takes
constexpr size_t kMostAnswer = 200;       // bytes of it, for the log
constexpr int kMostReplicas = 8;          // asked one after the other for the one that leads

template <auto Destroy>
struct Destroyer {
  void operator()(auto* handle) const noexcept { static_cast<void>(Destroy(handle)); }
};
using CurlEasy = std::unique_ptr<CURL, Destroyer<curl_easy_cleanup>>;
using CurlList = std::unique_ptr<curl_slist, Destroyer<curl_slist_free_all>>;

size_t keep_beginning(char* data, size_t, size_t size, void* answer) {
  auto& text = *static_cast<std::string*>(answer);
  text.append(data, std::min(size, kMostAnswer - std::min(kMostAnswer, text.size())));
  return size;
}

/// Ends a transfer that is under way when the end comes; the last one begins after that and has a time-out of its own.
int is_called_off(void* stop, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::stop_token*>(stop)->stop_requested() ? 1 : 0;
}

}  // namespace

std::string to_json(const JobProgress& progress, int64_t generation) {
  nlohmann::json json = {{"step", progress.step},
                         {"totalSteps", progress.total_steps},
                         {"tokensPerSecond", progress.tokens_per_second},
                         {"checkpointStep", progress.checkpoint_step},
                         {"silentRanks", progress.silent_ranks}};
  if (progress.loss) json["loss"] = *progress.loss;
  if (generation > 0) json["generation"] = generation;
  return json.dump();
}

/// A libcurl handle that keeps its connection from post to post.
class ProgressPoster::Connection {
 public:
  explicit Connection(const ProgressTarget& target);

  /// Empty where the operator has taken it, else what happened.
  std::string post(const std::string& body, std::chrono::milliseconds timeout, const std::stop_token& call_off);

 private:
  std::string perform(long& status);

  CurlEasy curl_;
  CurlList headers_;
};

ProgressPoster::Connection::Connection(const ProgressTarget& target) : curl_(curl_easy_init()) {
  if (!curl_) throw std::runtime_error("libcurl gives no handle for posting progress");
  CURL* const curl = curl_.get();
  headers_.reset(curl_slist_append(nullptr, ("Authorization: Bearer " + target.token).c_str()));
  curl_slist_append(headers_.get(), "Content-Type: application/json");
  curl_easy_setopt(curl, CURLOPT_URL, target.url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers_.get());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https,http");
  curl_easy_setopt(curl, CURLOPT_PROXY, "");  // a proxy of the pod's environment does not know the cluster's names
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(kConnectTimeout.count()));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);  // a name server that hangs does not hold up the end
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &is_called_off);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &keep_beginning);
  if (target.ca.empty()) return;
  curl_blob ca{const_cast<char*>(target.ca.data()), target.ca.size(), CURL_BLOB_COPY};
  curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &ca);
}

std::string ProgressPoster::Connection::post(const std::string& body, std::chrono::milliseconds timeout,
                                             const std::stop_token& call_off) {
  CURL* const curl = curl_.get();
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &call_off);
  std::string failure;
  for (int i = 0; i < kMostReplicas; ++i) {
    long status = 0;
    failure = perform(status);
    if (status != 503) break;  // 503: this replica does not lead; another connection may come to the one that does
  }
  return failure;
}

std::string ProgressPoster::Connection::perform(long& status) {
  std::string answer;
  curl_easy_setopt(curl_.get(), CURLOPT_WRITEDATA, &answer);
  const CURLcode code = curl_easy_perform(curl_.get());
  if (code != CURLE_OK) return curl_easy_strerror(code);
  curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status >= 200 && status < 300) return "";
  while (!answer.empty() && answer.back() == '\n') answer.pop_back();
  return fmt::format("HTTP {}{}{}", status, answer.empty() ? "" : ": ", answer);
}

ProgressPoster::ProgressPoster(ProgressTarget target, JobProgress begin, std::function<std::vector<int>()> silent_ranks)
    : target_(std::move(target)),
      silent_ranks_(std::move(silent_ranks)),
      connection_(std::make_unique<Connection>(target_)),
      newest_(std::move(begin)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

ProgressPoster::~ProgressPoster() = default;

void ProgressPoster::step(int64_t step, double loss, double tokens_per_second) {
  const std::lock_guard lock(mutex_);
  newest_.step = step;
  newest_.loss = loss;
  newest_.tokens_per_second = tokens_per_second;
}

void ProgressPoster::checkpoint(int64_t step) {
  const std::lock_guard lock(mutex_);
  newest_.checkpoint_step = step;
  is_urgent_ = true;
  changed_.notify_one();
}

void ProgressPoster::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool is_last = stop.stop_requested();
    is_urgent_ = false;
    const JobProgress progress = newest_;
    lock.unlock();
    post_if_changed(progress, is_last ? target_.last_words : target_.timeout, is_last ? std::stop_token() : stop);
    if (is_last) return;
    lock.lock();
    const auto gap = std::min(kLeastGap, target_.interval);
    changed_.wait_for(lock, stop, gap, [] { return false; });  // nothing but the end cuts this short
    changed_.wait_for(lock, stop, target_.interval - gap, [this] { return is_urgent_; });
  }
}

void ProgressPoster::post_if_changed(JobProgress progress, std::chrono::milliseconds timeout,
                                     const std::stop_token& stop) {
  try {
    if (silent_ranks_) progress.silent_ranks = silent_ranks_();
    progress.silent_ranks.resize(std::min(progress.silent_ranks.size(), kMostSilentRanks));
  } catch (const std::exception&) {  // the store is closing: the ranks that met there say so themselves
  }
  if (posted_ == progress) return;
  const std::string failure = connection_->post(to_json(progress, target_.generation), timeout, stop);
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
