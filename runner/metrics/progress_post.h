#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/condition_variable.h"
#include "common/mutex.h"
#include "metrics/config_watch.h"

namespace trainyard::metrics {

/// How far a job is, as the operator wants to know it (docs/interfaces.md, "Progress").
struct JobProgress {
  int64_t step = 0;
  int64_t total_steps = 0;
  std::optional<double> loss;  ///< none before the first step
  double tokens_per_second = 0;
  int64_t checkpoint_step = -1;  ///< -1: none yet
  std::vector<int> silent_ranks;
  std::string checkpoint_error;  ///< why the latest checkpoint could not be saved; "" where it could
  std::string metrics_error;     ///< why steps are missing from metrics.jsonl; "" where none is
  std::string config_changed;    ///< files of the configuration that are not what the run read; "" where all are
  bool operator==(const JobProgress&) const = default;
};

struct ProgressTarget {
  std::string url;         ///< TRAINYARD_PROGRESS_URL
  std::string token;       ///< the job's: sent as Bearer
  std::string ca;          ///< TRAINYARD_PROGRESS_CA, PEM; "": the system's authorities
  int64_t generation = 0;  ///< of the gang; 0: not said
  int world_size = 0;      ///< ranks of the gang; 0: not said
  std::chrono::milliseconds interval = std::chrono::seconds(5);
  std::chrono::milliseconds timeout = std::chrono::seconds(5);     ///< of one post
  std::chrono::milliseconds last_words = std::chrono::seconds(3);  ///< of the one at the end
};

/// The body of a post.
std::string to_json(const JobProgress& progress, int64_t generation = 0, int world_size = 0);

/// Posts the newest progress from a thread of its own: once an interval, also where nothing is new, as the operator takes
/// a rank 0 that it does not hear for one that hangs; and soon after a checkpoint, or one that failed, and at the
/// end. Nobody waits for it but the destructor, for last_words and a second at most. What
/// goes wrong is one log line when it begins and one when it is over: training goes on.
class ProgressPoster {
 public:
  /// `silent_ranks` is asked from the thread before each post; what it throws is dropped. May be empty. So is `config`,
  /// whether the files that the run read have changed.
  ProgressPoster(ProgressTarget target, JobProgress begin, std::function<std::vector<int>()> silent_ranks,
                 ConfigWatch config = ConfigWatch());
  ~ProgressPoster();
  ProgressPoster(const ProgressPoster&) = delete;
  ProgressPoster& operator=(const ProgressPoster&) = delete;

  /// Replaces what was not posted yet. One thread calls these.
  void step(int64_t step, double loss, double tokens_per_second);
  /// A checkpoint of this step is committed.
  void checkpoint(int64_t step);
  /// One could not be saved, and why.
  void checkpoint_failed(const std::string& why);
  /// Why steps are missing from metrics.jsonl; "": none is.
  void metrics_file(const std::string& error);

 private:
  class Connection;
  void run(const std::stop_token& stop);
  void post(JobProgress progress, bool is_last, std::chrono::milliseconds timeout,
            const std::stop_token& stop);
  [[nodiscard]] std::vector<int> silent_ranks() const;
  void note(const std::string& failure);

  const ProgressTarget target_;
  const std::function<std::vector<int>()> silent_ranks_;
  ConfigWatch config_;  ///< the thread's, as the next three
  const std::unique_ptr<Connection> connection_;
  std::optional<JobProgress> posted_;
  bool is_failing_ = false;
  Mutex mutex_;
  StoppableConditionVariable changed_;
  JobProgress newest_ GUARDED_BY(mutex_);
  bool is_urgent_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;  ///< last: it uses all above
};

}  // namespace trainyard::metrics
