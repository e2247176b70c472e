#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>

#include "base/json.h"
#include "base/time.h"
#include "kube/result.h"

namespace trainyard::kube {

struct ElectionSettings {
  std::string ns, name;
  std::string identity;  ///< of this process, never used by another: the pod's name and something random
  std::chrono::milliseconds lease_duration{15'000};  ///< others wait so long after the last renewal that they saw
  std::chrono::milliseconds renew_deadline{10'000};  ///< less: this process stops leading first
  std::chrono::milliseconds retry_period{2'000};
};

/// Who leads, by a coordination.k8s.io/v1 Lease. Following: looks at the lease, and takes it once it is free, or has
/// not changed for its duration. Leading: renews it; stops by itself when that has not worked for the renew deadline.
/// Times within the lease are for people: whether it has run out is told by this process's own clock, from when it saw
/// the last change. Pure: requests go out and replies come in as values, with the moment.
class Election {
 public:
  using Now = std::chrono::steady_clock::time_point;
  struct Observe {};  ///< GET the lease
  struct Write {
    Json lease;
    bool is_new = false;  ///< POST; else PUT, guarded by its resourceVersion
  };
  struct Wait {
    std::chrono::milliseconds duration;  ///< until the next turn
  };
  using Action = std::variant<Observe, Write, Wait>;

  explicit Election(ElectionSettings settings) : settings_(std::move(settings)) {}

  [[nodiscard]] Action turn(Now now, TimePoint calendar);
  [[nodiscard]] Action observed(const Result<Json>& reply, Now now, TimePoint calendar);
  /// `sent_at`: when the write left; the time that is led counts from there.
  [[nodiscard]] Action written(const Result<Json>& reply, Now sent_at, Now now);
  /// The lease given back, to PUT; none where this process does not lead. It no longer does afterwards.
  [[nodiscard]] std::optional<Json> release(Now now, TimePoint calendar);

  /// Strict: false from the deadline on, even if nothing has run since. To be asked right before each write.
  [[nodiscard]] bool is_leader_at(Now now) const { return led_since_ && now < *led_since_ + settings_.renew_deadline; }
  /// When leading ends unless it is renewed; none where it has ended.
  [[nodiscard]] std::optional<Now> deadline() const;
  /// Who has the lease, as far as seen; "": nobody.
  [[nodiscard]] std::string holder() const { return text_at(lease_, "/spec/holderIdentity"); }
  [[nodiscard]] const ElectionSettings& settings() const { return settings_; }

 private:
  void note(const Json& lease, Now now);
  [[nodiscard]] Now runs_out() const;
  [[nodiscard]] Json taken(TimePoint calendar) const;
  [[nodiscard]] Json fresh(TimePoint calendar) const;

  ElectionSettings settings_;
  Json lease_;                    ///< as last seen; null: none
  Now changed_{};                 ///< when that was seen first
  std::optional<Now> led_since_;  ///< when the last write that made or kept this process the leader was sent
};

}  // namespace trainyard::kube
