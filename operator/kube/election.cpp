#include "kube/election.h"

#include <algorithm>
#include <utility>

#include "kube/resources.h"

namespace trainyard::kube {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLongestLease = 1h;  // whatever somebody wrote into it

int64_t whole_seconds(std::chrono::milliseconds duration) {
  return std::max<int64_t>(1, std::chrono::ceil<std::chrono::seconds>(duration).count());
}

}  // namespace

Election::Action Election::turn(Now now, TimePoint calendar) {
  if (is_leader_at(now) && holder() == settings_.identity) return Write{taken(calendar)};
  return Observe{};
}

Election::Action Election::observed(const Result<Json>& reply, Now now, TimePoint calendar) {
  if (!reply && reply.error().kind == ErrorKind::NotFound) return Write{fresh(calendar), true};
  if (!reply) return Wait{settings_.retry_period};
  note(reply.value(), now);
  if (holder() == settings_.identity || holder().empty() || now >= runs_out()) return Write{taken(calendar)};
  led_since_.reset();
  // Twice as often as a leader renews, so that a renewal is never seen a whole period late; and at the moment itself.
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(runs_out() - now);
  return Wait{std::min(settings_.retry_period / 2, left)};
}

Election::Action Election::written(const Result<Json>& reply, Now sent_at, Now now) {
  if (reply) {
    note(reply.value(), now);
    led_since_ = sent_at;
    return Wait{settings_.retry_period};
  }
  switch (reply.error().kind) {
    case ErrorKind::Conflict:
    case ErrorKind::AlreadyExists:
    case ErrorKind::NotFound:
    case ErrorKind::Unknown:  // it may be ours: the lease itself says
      return Observe{};
    default:
      return Wait{settings_.retry_period / 2};
  }
}

std::optional<Json> Election::release(Now now, TimePoint calendar) {
  const bool is_ours = is_leader_at(now) && holder() == settings_.identity;
  led_since_.reset();
  if (!is_ours) return std::nullopt;
  Json lease = lease_;
  lease["spec"].erase("holderIdentity");
  lease["spec"]["leaseDurationSeconds"] = 1;
  lease["spec"]["renewTime"] = format_micro_time(calendar);
  return lease;
}

std::optional<Election::Now> Election::deadline() const {
  return led_since_ ? std::optional(*led_since_ + settings_.renew_deadline) : std::nullopt;
}

void Election::note(const Json& lease, Now now) {
  if (lease_.is_null() || text_at(lease, "/metadata/resourceVersion") != text_at(lease_, "/metadata/resourceVersion"))
    changed_ = now;
  lease_ = lease;
}

Election::Now Election::runs_out() const {
  const auto seconds = int_at(lease_, "/spec/leaseDurationSeconds");
  if (!seconds || *seconds < 0) return changed_ + settings_.lease_duration;
  return changed_ + std::min(kLongestLease, std::chrono::milliseconds(std::min<int64_t>(*seconds, 3600) * 1000));
}

Json Election::taken(TimePoint calendar) const {
  Json lease = lease_;
  Json& spec = lease["spec"];
  if (!spec.is_object()) spec = Json::object();
  spec["renewTime"] = format_micro_time(calendar);
  spec["leaseDurationSeconds"] = whole_seconds(settings_.lease_duration);
  if (holder() == settings_.identity) return lease;
  spec["holderIdentity"] = settings_.identity;
  spec["acquireTime"] = spec["renewTime"];
  spec["leaseTransitions"] = int_at(lease_, "/spec/leaseTransitions").value_or(0) + 1;
  return lease;
}

Json Election::fresh(TimePoint calendar) const {
  const std::string time = format_micro_time(calendar);
  return {{"apiVersion", api_version(kLeases)},
          {"kind", kLeases.kind},
          {"metadata", {{"name", settings_.name}, {"namespace", settings_.ns}}},
          {"spec",
           {{"holderIdentity", settings_.identity},
            {"leaseDurationSeconds", whole_seconds(settings_.lease_duration)},
            {"acquireTime", time},
            {"renewTime", time},
            {"leaseTransitions", 0}}}};
}

}  // namespace trainyard::kube
