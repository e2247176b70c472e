#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "api/job.h"
#include "base/job_token.h"
#include "base/time.h"
#include "http/message.h"

namespace trainyard::telemetry {

/// A job whose rank 0 may post.
struct TrackedJob {
  std::string uid;
  int64_t generation = 1;  ///< of its gang
};

/// POST /progress/<namespace>/<job>, with the job's token as Bearer: rank 0 of a job says how far it is. Any thread;
/// the leading replica tracks the jobs, the others answer 503, so that the client finds the leader at another
/// connection.
///   204 taken · 400 the body, with the reason · 401 no token · 403 another job's token · 404 no such job · 405 not
///   POST 409 posted by a gang that has been replaced · 429 more than about one a second · 503 this replica does not
///   lead
class ProgressEndpoint {
 public:
  using Clock = std::chrono::steady_clock;
  using OnProgress = std::function<void(const std::string& ns, const std::string& name, const api::Progress&)>;

  /// A job may post so often at once (a checkpoint and the end come when they come), and then once a second.
  static constexpr double kBurst = 3;

  /// `on_progress` is called from the server's threads, without a lock held.
  ProgressEndpoint(OperatorKey key, OnProgress on_progress)
      : key_(std::move(key)), on_progress_(std::move(on_progress)) {}

  /// While this is not true nothing is taken.
  void set_leading(bool leading);
  /// The job is there, with this uid and generation. `known`: how far it was when this operator first saw it, so that
  /// a job which stands still does not seem to move when the operator starts.
  void track(const std::string& ns, const std::string& name, const TrackedJob& job,
             const std::optional<api::Progress>& known = {});
  void forget(const std::string& ns, const std::string& name);
  void set_key(OperatorKey key);

  [[nodiscard]] http::Response answer(const http::Request& request, Clock::time_point now, TimePoint time);

 private:
  using JobName = std::pair<std::string, std::string>;
  struct Entry {
    TrackedJob job;
    std::optional<api::Progress> last;
    double allowance = kBurst;
    Clock::time_point counted;
  };
  std::optional<http::Response> refuse(const http::Request& request, const JobName& job, Clock::time_point now);
  bool spend(Entry& entry, Clock::time_point now);
  std::optional<http::Response> take(const JobName& job, std::optional<int64_t> generation, api::Progress& progress);

  std::mutex mutex_;
  OperatorKey key_;  ///< under mutex_, as the next two
  bool is_leading_ = false;
  std::map<JobName, Entry> jobs_;
  const OnProgress on_progress_;
};

/// `endpoint` outlives the handler.
[[nodiscard]] http::Handler progress_handler(ProgressEndpoint& endpoint);

}  // namespace trainyard::telemetry
