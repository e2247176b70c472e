#include "decide/conditions.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using namespace trainyard;
using namespace trainyard::decide;
using namespace std::chrono_literals;

namespace {

const TimePoint kNow{24h * 365 * 50};

void set(api::JobStatus& status, const char* type, const char* why = "Because") {
  set_condition(status, type, true, why, "a message", kNow);
}

/// "Running True", in their order.
std::vector<std::string> conditions_of(const api::JobStatus& status) {
  std::vector<std::string> all;
  for (const api::Condition& one : status.conditions) all.push_back(one.type + (one.status ? " True" : " False"));
  return all;
}

}  // namespace

TEST_CASE("conditions: Running and Restarting remove each other, and the one that was set last comes last",
          "[decide]") {
  api::JobStatus status;
  set(status, condition::kCreated);
  set(status, condition::kRunning);
  CHECK(conditions_of(status) == std::vector<std::string>{"Created True", "Running True"});
  set(status, condition::kRestarting);
  CHECK(conditions_of(status) == std::vector<std::string>{"Created True", "Restarting True"});
  set(status, condition::kRunning);
  CHECK(conditions_of(status) == std::vector<std::string>{"Created True", "Running True"});
}

TEST_CASE("conditions: the end of a job ends Running, and nothing follows on Failed", "[decide]") {
  api::JobStatus status;
  set(status, condition::kRunning);
  CHECK_FALSE(is_finished(status));
  set(status, condition::kFailed);
  CHECK(is_finished(status));
  CHECK(conditions_of(status) == std::vector<std::string>{"Running False", "Failed True"});
  set(status, condition::kRunning);
  CHECK_FALSE(is_true(status, condition::kRunning));
}

TEST_CASE("conditions: what is set again for the same reason keeps its time and its message", "[decide]") {
  api::JobStatus status;
  set(status, condition::kRunning, "First");
  set_condition(status, condition::kRunning, true, "First", "another message", kNow + 1h);
  CHECK(find_condition(status, condition::kRunning)->message == "a message");
  set_condition(status, condition::kRunning, true, "Second", "another message", kNow + 1h);
  CHECK(find_condition(status, condition::kRunning)->message == "another message");
}

TEST_CASE("conditions: Trouble stands before the job's State, and is removed by an empty message", "[decide]") {
  api::JobStatus status;
  set(status, condition::kCreated);
  set_trouble(status, "NameTaken", "somebody has it", kNow);
  CHECK(status.conditions.back().type == condition::kCreated);
  CHECK(is_true(status, condition::kTrouble));
  set_trouble(status, "", "", kNow);
  CHECK(conditions_of(status) == std::vector<std::string>{"Created True"});
}
