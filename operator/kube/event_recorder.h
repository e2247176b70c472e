#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>

#include "kube/client.h"

namespace trainyard::kube {

struct InvolvedObject {
  std::string api_version, kind, ns, name, uid, resource_version;
};

struct EventDetails {
  bool is_warning = false;
  std::string reason, message;
  /// Not empty: said once for this object and this text, whoever says it: the event's name follows from it.
  std::string once{};
};

/// Writes core/v1 Events about objects. Bounded in what it remembers and in what it sends: so many of one reason about
/// one object, refilled slowly; what is over is dropped, and a log line counts it. Failures are counted there too and
/// hurt nothing else. A repeated event raises the count of the first. One thread: the loop's.
class EventRecorder {
 public:
  static constexpr size_t kRemembered = 4096;  ///< events, the least recently used go first
  static constexpr size_t kUnsent = 2048;      ///< of these, not yet with the server
  static constexpr double kBurst = 25;         ///< of one reason about one object, as other clients have it
  static constexpr double kPerSecond = 1.0 / 60;

  EventRecorder(Client& client, std::string component, std::string host);
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void record(const InvolvedObject& about, const EventDetails& details);
  [[nodiscard]] uint64_t dropped() const { return dropped_; }

 private:
  struct Series {
    std::string key;
    InvolvedObject about;
    EventDetails details;
    std::string name;
    TimePoint first, last;
    int count = 0, sent = 0;
    bool is_busy = false;
  };
  using Place = std::list<Series>::iterator;

  [[nodiscard]] bool may_send(const InvolvedObject& about, const std::string& reason);
  [[nodiscard]] Place series_of(const InvolvedObject& about, const EventDetails& details);
  void forget_oldest();
  void send(Place series);
  void finish(const std::string& key, int count, const Result<Json>& reply);
  void count_loss(uint64_t& counter);

  Client& client_;
  std::string component_, host_;
  std::list<Series> series_;  ///< most recently used first
  std::unordered_map<std::string, Place> by_key_;
  std::unordered_map<std::string, TokenBucket> buckets_;
  size_t busy_ = 0;
  uint64_t dropped_ = 0, failed_ = 0;
  std::string last_failure_;
  bool will_report_ = false;
  Alive alive_;
};

/// The object to create. `name`: event_name() or once_name().
[[nodiscard]] Json event_object(const InvolvedObject& about, const EventDetails& details, const std::string& name,
                                TimePoint first, TimePoint last, int count);
/// "<object>.<hash>" of something that no other event has.
[[nodiscard]] std::string event_name(const InvolvedObject& about, uint64_t unique);
/// The same for all operators: of the object's uid, the type, the reason and `once`.
[[nodiscard]] std::string once_name(const InvolvedObject& about, const EventDetails& details);

}  // namespace trainyard::kube
