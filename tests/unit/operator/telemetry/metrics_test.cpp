#include "telemetry/metrics.h"

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "telemetry/families.h"

using namespace trainyard;
using namespace trainyard::telemetry;
using Catch::Contains;

TEST_CASE("metrics: the reference's counters have its names and labels", "[metrics]") {
  Metrics metrics;
  for (int i = 0; i < 5; ++i) metrics.job(JobEvent::Created, "team");
  metrics.job(JobEvent::Deleted, "team");
  metrics.job(JobEvent::Successful, "team");
  metrics.job(JobEvent::Failed, "team");
  metrics.job(JobEvent::Restarted, "other");
  const std::string text = metrics.text();
  CHECK_THAT(text, Contains("# TYPE training_operator_jobs_created_total counter\n"
                            "training_operator_jobs_created_total{framework=\"pytorch\",job_namespace=\"team\"} 5\n"));
  CHECK_THAT(text, Contains("training_operator_jobs_deleted_total{framework=\"pytorch\",job_namespace=\"team\"} 1\n"));
  CHECK_THAT(text,
             Contains("training_operator_jobs_successful_total{framework=\"pytorch\",job_namespace=\"team\"} 1\n"));
  CHECK_THAT(text, Contains("training_operator_jobs_failed_total{framework=\"pytorch\",job_namespace=\"team\"} 1\n"));
  CHECK_THAT(text,
             Contains("training_operator_jobs_restarted_total{framework=\"pytorch\",job_namespace=\"other\"} 1\n"));
}

TEST_CASE("metrics: what did not happen leaves no line", "[metrics]") {
  Metrics metrics;
  metrics.job(JobEvent::Restarted, "team", 2);
  metrics.job(JobEvent::Failed, "team", 0);
  metrics.reconciled(true, std::chrono::milliseconds(2));
  metrics.reconciled(false, std::chrono::milliseconds(2));
  const std::string text = metrics.text();
  CHECK_THAT(text, Contains(R"(jobs_restarted_total{framework="pytorch",job_namespace="team"} 2)") &&
                       !Contains("jobs_failed_total{"));
  CHECK_THAT(text, Contains(R"(reconcile_seconds_count{result="success"} 1)") &&
                       Contains(R"(reconcile_seconds_count{result="error"} 1)"));
}

TEST_CASE("metrics: requests are counted by verb, resource and code, and timed", "[metrics]") {
  Metrics metrics;
  metrics.api_request({"create", "pods", 201, std::chrono::milliseconds(3)});
  metrics.api_request({"create", "pods", 409, std::chrono::milliseconds(3)});
  const std::string text = metrics.text();
  CHECK_THAT(text, Contains(R"(requests_total{code="201",resource="pods",verb="create"} 1)"));
  CHECK_THAT(text, Contains(R"(request_seconds_bucket{resource="pods",verb="create",le="0.0025"} 0)"));
  CHECK_THAT(text, Contains(R"(request_seconds_bucket{resource="pods",verb="create",le="0.005"} 2)"));
  CHECK_THAT(text, Contains(R"(request_seconds_bucket{resource="pods",verb="create",le="+Inf"} 2)"));
  metrics.api_request({"watch", "pods", 200, std::chrono::minutes(5)});
  CHECK_THAT(metrics.text(), Contains(R"(requests_total{code="200",resource="pods",verb="watch"} 1)") &&
                                 !Contains(R"(request_seconds_count{resource="pods",verb="watch"})"));
}

TEST_CASE("metrics: a state that no job has any more is 0", "[metrics]") {
  Metrics metrics;
  metrics.jobs({{"Running", 2}, {"Created", 1}});
  metrics.jobs({{"Running", 3}});
  CHECK_THAT(metrics.text(), Contains("trainyard_operator_jobs{state=\"Running\"} 3\n") &&
                                 Contains("trainyard_operator_jobs{state=\"Created\"} 0\n"));
}

TEST_CASE("metrics: a job's progress is shown until it is forgotten, for so many jobs at once", "[metrics]") {
  Metrics metrics;
  metrics.progress("team", "llama", {.step = 120, .total_steps = 500, .loss = 3.25, .tokens_per_second = 1234.5});
  CHECK_THAT(metrics.text(),
             Contains(R"(trainyard_operator_job_step{job_name="llama",job_namespace="team"} 120)") &&
                 Contains(R"(trainyard_operator_job_loss{job_name="llama",job_namespace="team"} 3.25)") &&
                 Contains(R"(trainyard_operator_job_checkpoint_step{job_name="llama",job_namespace="team"} -1)"));
  for (size_t i = 1; i < Metrics::kMostJobsWithProgress; ++i) metrics.progress("many", std::to_string(i), {.step = 1});
  metrics.progress("team", "late", {.step = 7});
  CHECK_THAT(metrics.text(), !Contains("late"));
  metrics.forget("team", "llama");
  metrics.forget("team", "unknown");
  CHECK_THAT(metrics.text(), !Contains("llama"));
  metrics.progress("team", "late", {.step = 8});
  CHECK_THAT(metrics.text(), Contains(R"(job_step{job_name="late",job_namespace="team"} 8)"));
}

TEST_CASE("metrics: a namespace with any bytes cannot break the format", "[metrics]") {
  Metrics metrics;
  metrics.progress("a\"b\\c\nd", "x", {.step = 1});
  CHECK_THAT(metrics.text(), Contains(R"(job_namespace="a\"b\\c\nd"} 1)"));
}

TEST_CASE("metrics: the process shows its memory, time and files", "[metrics]") {
  const Metrics metrics;
  const std::string text = metrics.text();
  for (const char* const name : {"process_resident_memory_bytes ", "process_cpu_seconds_total ", "process_open_fds "})
    CHECK_THAT(text, Contains(std::string("\n") + name) && !Contains(std::string("\n") + name + "0\n"));
}

TEST_CASE("metrics: many threads count and scrape at once", "[metrics]") {
  Metrics metrics;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&metrics, t] {
        for (int i = 0; i < 200; ++i) {
          metrics.job(JobEvent::Created, "team");
          metrics.progress("team", std::to_string(i % 7), {.step = i});
          if (i % 3 == 0) metrics.forget("team", std::to_string(i % 7));
          if (i % 50 == t) static_cast<void>(metrics.text());
        }
      });
  }
  CHECK_THAT(metrics.text(), Contains(R"(created_total{framework="pytorch",job_namespace="team"} 800)"));
}

TEST_CASE("metrics: a name that is not in the list is a defect", "[metrics]") {
  CHECK_THROWS_WITH(family("trainyard_typo"), "no metric is called trainyard_typo");
}
