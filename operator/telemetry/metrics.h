#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "api/job.h"
#include "base/time.h"

namespace trainyard::telemetry {

enum class JobEvent { Created, Deleted, Successful, Failed, Restarted };

struct ApiRequest {
  std::string verb;      ///< "get", "create", "patch", …; of a "watch": its end, and that is not timed
  std::string resource;  ///< "pods", "pytorchjobs/status"
  int code = 0;          ///< 0: no answer came
  std::chrono::duration<double> duration{};
};

/// What the operator counts, for Prometheus. All methods from any thread.
class Metrics {
 public:
  /// Jobs whose progress is shown, so that a scrape stays bounded. Others are left out until some of these go.
  static constexpr size_t kMostJobsWithProgress = 1000;

  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  void job(JobEvent event, const std::string& ns, int times = 1);
  void reconciled(bool succeeded, std::chrono::duration<double> duration);
  void queue_depth(size_t jobs);
  void api_request(const ApiRequest& request);
  void leads(bool leads);
  /// The jobs by the type of their last condition. States that were there before and are not in `states` become 0.
  void jobs(const std::map<std::string, size_t>& states);
  void pods(size_t pods);
  void reviewed(bool allowed, std::chrono::duration<double> duration);
  void certificate_expires(TimePoint time);
  void progress(const std::string& ns, const std::string& name, const api::Progress& progress);
  /// The job is gone or finished: its progress is shown no more.
  void forget(const std::string& ns, const std::string& name);

  /// All of it in Prometheus' text format.
  [[nodiscard]] std::string text() const;

 private:
  struct Content;
  const std::unique_ptr<Content> content_;
};

}  // namespace trainyard::telemetry
