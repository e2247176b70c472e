#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "api/job.h"
#include "base/job_token.h"
#include "base/time.h"
#include "common/mutex.h"
#include "http/message.h"

namespace trainyard::telemetry {

/// A job whose rank 0 may post.
struct TrackedJob {
  std::string uid;
  int64_t generation = 1;  ///< of its gang
};

/// POST /progress/<namespace>/<job>/authorities, with a nonce of 64 hex digits: by which authorities the operator's
/// certificates are signed, with authorities_proof() of the job's token. It needs no token and any replica answers: who
/// has authorities that do not hold any more sends nothing secret. 200 · 400 no nonce · 404 no such job · 405 not POST
///
/// POST /progress/<namespace>/<job>, with the job's token as Bearer: rank 0 of a job says how far it is. Any thread;
/// the leading replica tracks the jobs, the others answer 503, so that the client finds the leader at another
/// connection.
///   204 taken · 400 the body, with the reason · 401 no token · 403 another job's token · 404 no such job · 405 not
///   POST 409 posted by a gang that has been replaced · 429 more than about one a second · 503 this replica does not
///   lead
class ProgressEndpoint {
 public:
  using Clock = std::chrono::steady_clock;
  using OnPost = std::function<void(const std::string& ns, const std::string& name, const api::ProgressPost&)>;

  /// A job may post so often at once (a checkpoint and the end come when they come), and then once a second.
  static constexpr double kBurst = 3;

  /// `on_post` is called from the server's threads, without a lock held: with each post that is taken, and with the
  /// last again, its `refusal` said, where the job's own rank 0 posts what cannot be taken.
  ProgressEndpoint(OperatorKey key, OnPost on_post) : key_(std::move(key)), on_post_(std::move(on_post)) {}

  /// While this is not true nothing is taken.
  void set_leading(bool leading);
  /// The job is there, with this uid and generation. `known`: how far it was when this operator first saw it, so that
  /// a job which stands still does not seem to move when the operator starts.
  void track(const std::string& ns, const std::string& name, const TrackedJob& job,
             const std::optional<api::Progress>& known = {});
  void forget(const std::string& ns, const std::string& name);
  /// `authorities`: PEM of those that sign the operator's certificates; "" where nobody here knows them.
  void set_trust(OperatorKey key, std::string authorities);

  [[nodiscard]] http::Response answer(const http::Request& request, Clock::time_point now, TimePoint time);

 private:
  using JobName = std::pair<std::string, std::string>;
  struct Entry {
    TrackedJob job;
    std::optional<api::Progress> known;      ///< how far the gang was when this operator first saw it
    std::optional<api::ProgressPost> last;  ///< of this generation
    double allowance = kBurst;
    Clock::time_point counted;
  };
  http::Response prove_authorities(const JobName& job, const std::string& nonce);
  std::optional<http::Response> refuse(const http::Request& request, const JobName& job, Clock::time_point now);
  bool spend(Entry& entry, Clock::time_point now) REQUIRES(mutex_);
  std::optional<http::Response> take(const JobName& job, api::ProgressPost& post);
  std::optional<api::ProgressPost> last_refusing(const JobName& job, const std::string& why, TimePoint time);

  Mutex mutex_;
  OperatorKey key_ GUARDED_BY(mutex_);
  std::string authorities_ GUARDED_BY(mutex_);
  bool is_leading_ GUARDED_BY(mutex_) = false;
  std::map<JobName, Entry> jobs_ GUARDED_BY(mutex_);
  const OnPost on_post_;
};

/// `endpoint` outlives the handler.
[[nodiscard]] http::Handler progress_handler(ProgressEndpoint& endpoint);

}  // namespace trainyard::telemetry
