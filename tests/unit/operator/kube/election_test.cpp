#include "kube/election.h"

#include <catch2/catch.hpp>
#include <tuple>

namespace trainyard::kube {
namespace {

using namespace std::chrono_literals;

Election::Now at(std::chrono::milliseconds since_start) {
  return Election::Now{} + 1h + since_start;
}

TimePoint calendar() {
  return *parse_time("2026-11-21T10:00:00Z");
}

Election follower(const std::string& identity = "me") {
  return Election({.ns = "ns", .name = "lock", .identity = identity});
}

Json versioned(Json lease, int version) {
  lease["metadata"]["resourceVersion"] = std::to_string(version);
  return lease;
}

Json lease_of(const std::string& holder, int version, int transitions = 3) {
  Json spec{{"leaseDurationSeconds", 15}, {"leaseTransitions", transitions}, {"renewTime", "1999-01-01T00:00:00Z"}};
  if (!holder.empty()) spec["holderIdentity"] = holder;
  return versioned({{"metadata", {{"name", "lock"}}}, {"spec", spec}}, version);
}

ApiError error(ErrorKind kind) {
  return {.kind = kind};
}

Election leader() {
  Election election = follower();
  const auto write = std::get<Election::Write>(election.observed(error(ErrorKind::NotFound), at(0s), calendar()));
  std::ignore = election.written(versioned(write.lease, 1), at(0s), at(0s));
  return election;
}

TEST_CASE("a lease that is not there is created, with no transition", "[kube]") {
  Election election = follower();
  CHECK(std::holds_alternative<Election::Observe>(election.turn(at(0s), calendar())));
  const auto write = std::get<Election::Write>(election.observed(error(ErrorKind::NotFound), at(0s), calendar()));
  CHECK(write.is_new);
  CHECK(write.lease["spec"] == Json{{"holderIdentity", "me"},
                                    {"leaseDurationSeconds", 15},
                                    {"acquireTime", "2026-11-21T10:00:00.000000Z"},
                                    {"renewTime", "2026-11-21T10:00:00.000000Z"},
                                    {"leaseTransitions", 0}});
  CHECK_FALSE(election.is_leader_at(at(0s)));
  std::ignore = election.written(versioned(write.lease, 1), at(0s), at(1s));
  CHECK(election.is_leader_at(at(1s)));
}

TEST_CASE("leading ends by itself at the renew deadline, counted from when the renewal was sent", "[kube]") {
  Election election = leader();
  CHECK(election.is_leader_at(at(9'999ms)));
  CHECK_FALSE(election.is_leader_at(at(10s)));
  CHECK(std::holds_alternative<Election::Observe>(election.turn(at(10s), calendar())));
  const auto write = std::get<Election::Write>(election.turn(at(8s), calendar()));
  std::ignore = election.written(versioned(write.lease, 2), at(8s), at(9s));
  CHECK(election.is_leader_at(at(17'999ms)));
  CHECK_FALSE(election.is_leader_at(at(18s)));
}

TEST_CASE("a renewal keeps transitions and the time of acquiring, and the guard", "[kube]") {
  Election election = leader();
  const auto write = std::get<Election::Write>(election.turn(at(2s), *parse_time("2026-11-21T10:00:02Z")));
  CHECK_FALSE(write.is_new);
  CHECK(text_at(write.lease, "/metadata/resourceVersion") == "1");
  CHECK(text_at(write.lease, "/spec/acquireTime") == "2026-11-21T10:00:00.000000Z");
  CHECK(text_at(write.lease, "/spec/renewTime") == "2026-11-21T10:00:02.000000Z");
  CHECK(int_at(write.lease, "/spec/leaseTransitions") == 0);
}

TEST_CASE("another's lease is taken when it has not changed for its duration by our own clock, whatever it says",
          "[kube]") {
  Election election = follower();
  const auto wait = std::get<Election::Wait>(election.observed(lease_of("other", 7), at(0s), calendar()));
  CHECK(wait.duration == 1s);
  CHECK(std::get<Election::Wait>(election.observed(lease_of("other", 8), at(14s), calendar())).duration == 1s);
  CHECK(std::holds_alternative<Election::Wait>(election.observed(lease_of("other", 8), at(15s), calendar())));
  CHECK(std::get<Election::Wait>(election.observed(lease_of("other", 8), at(28'700ms), calendar())).duration == 300ms);
  const auto write = std::get<Election::Write>(election.observed(lease_of("other", 8), at(29s), calendar()));
  CHECK(text_at(write.lease, "/spec/holderIdentity") == "me");
  CHECK(int_at(write.lease, "/spec/leaseTransitions") == 4);
  CHECK(text_at(write.lease, "/metadata/resourceVersion") == "8");
}

TEST_CASE("a lease that was given back is taken at once", "[kube]") {
  Election election = follower();
  const auto write = std::get<Election::Write>(election.observed(lease_of("", 7), at(0s), calendar()));
  CHECK(int_at(write.lease, "/spec/leaseTransitions") == 4);
}

TEST_CASE("who loses the race for a lease looks again, and who finds another in his place leads no longer", "[kube]") {
  Election election = leader();
  CHECK(std::holds_alternative<Election::Observe>(election.written(error(ErrorKind::Conflict), at(2s), at(2s))));
  CHECK(std::holds_alternative<Election::Wait>(election.observed(lease_of("other", 9), at(3s), calendar())));
  CHECK_FALSE(election.is_leader_at(at(3s)));
  CHECK(election.holder() == "other");
}

TEST_CASE("a renewal with an unknown end is looked up, and it counts only when it is certain", "[kube]") {
  Election election = leader();
  CHECK(std::holds_alternative<Election::Observe>(election.written(error(ErrorKind::Unknown), at(4s), at(9s))));
  CHECK_FALSE(election.is_leader_at(at(10s)));
  const auto write = std::get<Election::Write>(election.observed(lease_of("me", 2), at(11s), calendar()));
  CHECK(text_at(write.lease, "/metadata/resourceVersion") == "2");
  std::ignore = election.written(versioned(write.lease, 3), at(11s), at(11s));
  CHECK(election.is_leader_at(at(20s)));
}

TEST_CASE("a server that is away is asked again twice a period, and the deadline holds", "[kube]") {
  Election election = leader();
  CHECK(std::get<Election::Wait>(election.written(error(ErrorKind::NotSent), at(2s), at(2s))).duration == 1s);
  CHECK(std::get<Election::Wait>(election.observed(error(ErrorKind::Server), at(3s), calendar())).duration == 2s);
  CHECK(election.is_leader_at(at(9s)));
  CHECK_FALSE(election.is_leader_at(at(10s)));
}

TEST_CASE("releasing gives the lease back, guarded, once and only by who leads", "[kube]") {
  Election election = leader();
  const auto lease = election.release(at(5s), calendar());
  REQUIRE(lease);
  CHECK_FALSE(lease->at("spec").contains("holderIdentity"));
  CHECK(text_at(*lease, "/metadata/resourceVersion") == "1");
  CHECK_FALSE(election.is_leader_at(at(5s)));
  CHECK_FALSE(election.release(at(5s), calendar()));
  Election late = leader();
  CHECK_FALSE(late.release(at(10s), calendar()));
}

TEST_CASE("nonsense in a lease is waited out as our own duration, an hour at most", "[kube]") {
  Json lease = lease_of("other", 1);
  const Json duration = GENERATE(Json(-5), Json("long"), Json(nullptr));
  lease["spec"]["leaseDurationSeconds"] = duration;
  Election election = follower();
  CHECK(std::holds_alternative<Election::Wait>(election.observed(lease, at(0s), calendar())));
  CHECK(std::holds_alternative<Election::Wait>(election.observed(lease, at(14s), calendar())));
  CHECK(std::holds_alternative<Election::Write>(election.observed(lease, at(15s), calendar())));
  Election patient = follower();
  lease["spec"]["leaseDurationSeconds"] = int64_t{1} << 62;
  CHECK(std::holds_alternative<Election::Wait>(patient.observed(lease, at(0s), calendar())));
  CHECK(std::holds_alternative<Election::Write>(patient.observed(lease, at(3600s), calendar())));
}

}  // namespace
}  // namespace trainyard::kube
