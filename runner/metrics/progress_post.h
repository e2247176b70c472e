#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace trainyard::metrics {

/// How far a job is, as the operator wants to know it (docs/interfaces.md, "Progress").
struct JobProgress {
  int64_t step = 0;
  int64_t total_steps = 0;
  std::optional<double> loss;  ///< none before the first step
  double tokens_per_second = 0;
  int64_t checkpoint_step = -1;  ///< -1: none yet
  std::vector<int> silent_ranks;
  bool operator==(const JobProgress&) const = default;
};

struct ProgressTarget {
  std::string url;         ///< TRAINYARD_PROGRESS_URL
  std::string token;       ///< the job's: sent as Bearer
  std::string ca;          ///< TRAINYARD_PROGRESS_CA, PEM; "": the system's authorities
  int64_t generation = 0;  ///< of the gang; 0: not said
  std::chrono::milliseconds interval = std::chrono::seconds(5);
  std::chrono::milliseconds timeout = std::chrono::seconds(5);     ///< of one post
  std::chrono::milliseconds last_words = std::chrono::seconds(3);  ///< of the one at the end
};

/// The body of a post.
std::string to_json(const JobProgress& progress, int64_t generation);

/// Posts the newest progress from a thread of its own: when it has changed, at most one post an interval, and soon
/// after a checkpoint and at the end. Nobody waits for it but the destructor, for last_words and a second at most. What
/// goes wrong is one log line when it begins and one when it is over: training goes on.
class ProgressPoster {
 public:
  /// `silent_ranks` is asked from the thread before each post; what it throws is dropped. May be empty.
  ProgressPoster(ProgressTarget target, JobProgress begin, std::function<std::vector<int>()> silent_ranks);
  ~ProgressPoster();
  ProgressPoster(const ProgressPoster&) = delete;
  ProgressPoster& operator=(const ProgressPoster&) = delete;

  /// Replaces what was not posted yet. One thread calls these.
  void step(int64_t step, double loss, double tokens_per_second);
  /// A checkpoint of this step is committed.
  void checkpoint(int64_t step);

 private:
  class Connection;
  void run(const std::stop_token& stop);
  void post_if_changed(JobProgress progress, std::chrono::milliseconds timeout, const std::stop_token& stop);
  void note(const std::string& failure);

  const ProgressTarget target_;
  const std::function<std::vector<int>()> silent_ranks_;
  const std::unique_ptr<Connection> connection_;  ///< the thread's, as the next two
  std::optional<JobProgress> posted_;
  bool is_failing_ = false;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  JobProgress newest_;  ///< under mutex_, as the next
  bool is_urgent_ = false;
  std::jthread thread_;  ///< last: it uses all above
};

}  // namespace trainyard::metrics
