#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "api/job.h"
#include "base/job_token.h"
#include "common/mutex.h"
#include "common/unique_fd.h"
#include "http/server.h"
#include "telemetry/progress_endpoint.h"

namespace trainyard::local {

/// Where rank 0 of each job says how far it is: the operator's endpoint on loopback, without TLS. What was posted waits
/// here until the loop over the jobs takes it.
class ProgressInbox {
 public:
  /// Throws http::ListenError. Its thread inherits the signal mask: signals are to be blocked before.
  ProgressInbox();

  [[nodiscard]] const std::string& url() const { return url_; }  ///< "http://127.0.0.1:40213/progress"
  [[nodiscard]] const OperatorKey& key() const { return key_; }  ///< of the tokens by which jobs may post
  /// Readable while something waits; take_notice() ends that.
  [[nodiscard]] int fd() const { return wake_.get(); }
  void take_notice() const;

  /// The job's gang of this generation may post.
  void track(const api::Job& job);
  /// What was posted since it was last asked for, the newest alone.
  [[nodiscard]] std::optional<api::ProgressPost> take(const api::Job& job);

 private:
  using JobName = std::pair<std::string, std::string>;
  void put(const JobName& job, const api::ProgressPost& post);

  const OperatorKey key_ = OperatorKey::random();
  const UniqueFd wake_;
  Mutex mutex_;
  std::map<JobName, api::ProgressPost> newest_ GUARDED_BY(mutex_);
  telemetry::ProgressEndpoint endpoint_;
  http::Server server_;  ///< last: its thread uses all above
  const std::string url_;
};

}  // namespace trainyard::local
