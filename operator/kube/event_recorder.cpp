#include "kube/event_recorder.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <initializer_list>
#include <utility>

#include "kube/resources.h"

namespace trainyard::kube {
namespace {

using namespace std::chrono_literals;

constexpr size_t kMessageBytes = 1024, kNameBytes = 253;
constexpr auto kReportAfter = 10s;
constexpr size_t kBuckets = 4096;

/// FNV-1a: names must be the same in every build of every operator.
uint64_t hash_of(std::initializer_list<std::string_view> parts) {
  uint64_t hash = 0xcbf29ce484222325U;
  const auto add = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3U; };
  for (const std::string_view part : parts) {
    for (const char c : part) add(static_cast<unsigned char>(c));
    add(0);
  }
  return hash;
}

std::string cut(std::string text) {
  if (text.size() <= kMessageBytes) return text;
  size_t end = kMessageBytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not within a character
  return text.substr(0, end) + "...";
}

std::string key_of_series(const InvolvedObject& about, const EventDetails& details) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", about.uid, details.is_warning, details.reason, details.once,
                     details.message);
}

}  // namespace

std::string event_name(const InvolvedObject& about, uint64_t unique) {
  return fmt::format("{}.{:016x}", about.name.substr(0, kNameBytes - 17), unique);
}

std::string once_name(const InvolvedObject& about, const EventDetails& details) {
  return event_name(about,
                    hash_of({about.uid, details.is_warning ? "Warning" : "Normal", details.reason, details.once}));
}

Json event_object(const InvolvedObject& about, const EventDetails& details, const std::string& name, TimePoint first,
                  TimePoint last, int count) {
  return {{"apiVersion", "v1"},
          {"kind", "Event"},
          {"metadata", {{"name", name}, {"namespace", about.ns}}},
          {"involvedObject",
           {{"apiVersion", about.api_version},
            {"kind", about.kind},
            {"namespace", about.ns},
            {"name", about.name},
            {"uid", about.uid},
            {"resourceVersion", about.resource_version}}},
          {"type", details.is_warning ? "Warning" : "Normal"},
          {"reason", details.reason},
          {"message", cut(details.message)},
          {"firstTimestamp", format_time(first)},
          {"lastTimestamp", format_time(last)},
          {"count", count}};
}

EventRecorder::EventRecorder(Client& client, std::string component, std::string host)
    : client_(client), component_(std::move(component)), host_(std::move(host)) {}

void EventRecorder::record(const InvolvedObject& about, const EventDetails& details) {
  const auto known = by_key_.find(key_of_series(about, details));
  if (known != by_key_.end() && !details.once.empty()) return;
  if ((known == by_key_.end() && busy_ >= kUnsent) || !may_send(about, details.reason)) return count_loss(dropped_);
  const Place series = series_of(about, details);
  series->last = std::chrono::system_clock::now();
  ++series->count;
  if (!series->is_busy) send(series);
}

bool EventRecorder::may_send(const InvolvedObject& about, const std::string& reason) {
  const auto now = EventLoop::now();
  if (buckets_.size() >= kBuckets) buckets_.clear();  // too generous once in a long while, and bounded
  const auto bucket = buckets_.try_emplace(about.uid + "\n" + reason, kPerSecond, kBurst, now).first;
  return bucket->second.take(now) == EventLoop::Clock::duration::zero();
}

EventRecorder::Place EventRecorder::series_of(const InvolvedObject& about, const EventDetails& details) {
  std::string key = key_of_series(about, details);
  if (const auto known = by_key_.find(key); known != by_key_.end()) {
    series_.splice(series_.begin(), series_, known->second);
    return series_.begin();
  }
  forget_oldest();
  series_.push_front({.key = key, .about = about, .details = details, .first = std::chrono::system_clock::now()});
  by_key_.emplace(std::move(key), series_.begin());
  return series_.begin();
}

void EventRecorder::forget_oldest() {
  while (series_.size() >= kRemembered && !series_.back().is_busy) {
    by_key_.erase(series_.back().key);
    series_.pop_back();
  }
}

void EventRecorder::send(Place series) {
  series->is_busy = true;
  ++busy_;
  const bool is_new = series->name.empty();
  if (is_new)
    series->name = series->details.once.empty() ? event_name(series->about, client_.random()())
                                                : once_name(series->about, series->details);
  Request request;
  if (is_new) {
    Json event = event_object(series->about, series->details, series->name, series->first, series->last, series->count);
    event["source"] = {{"component", component_}, {"host", host_}};
    event["reportingComponent"] = component_;
    event["reportingInstance"] = host_;
    request = create(collection_path(kEvents, series->about.ns), event);
  } else {
    request = merge_patch(object_path(kEvents, series->about.ns, series->name),
                          {{"count", series->count}, {"lastTimestamp", format_time(series->last)}});
  }
  request.priority = Priority::Bulk;  // after all that the job itself needs
  client_.call(std::move(request), alive_.guard([this, key = series->key, count = series->count](
                                                    const Result<Json>& reply) { finish(key, count, reply); }));
}

void EventRecorder::finish(const std::string& key, int count, const Result<Json>& reply) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return;
  const Place series = found->second;
  series->is_busy = false;
  --busy_;
  const bool was_new = series->sent == 0;
  series->sent = count;
  if (!reply && !was_new && reply.error().kind == ErrorKind::NotFound) {  // the server keeps events for an hour
    series->name.clear();
    series->sent = 0;
    return send(series);
  }
  if (!reply && reply.error().kind != ErrorKind::AlreadyExists) {
    last_failure_ = reply.error().message;
    count_loss(failed_);
    if (was_new) {
      series->name.clear();
      series->sent = 0;
      return;  // the next of its kind tries again
    }
  }
  if (series->count > series->sent && series->details.once.empty()) send(series);
}

void EventRecorder::count_loss(uint64_t& counter) {
  ++counter;
  if (std::exchange(will_report_, true)) return;
  const uint64_t dropped_before = dropped_ - (&counter == &dropped_ ? 1 : 0);
  const uint64_t failed_before = failed_ - (&counter == &failed_ ? 1 : 0);
  client_.loop().after(kReportAfter, alive_.guard([this, dropped_before, failed_before] {
    will_report_ = false;
    const uint64_t failed = failed_ - failed_before;
    spdlog::warn("events: {} more than one object may have in a while were dropped, {} could not be written{}",
                 dropped_ - dropped_before, failed, failed > 0 ? ": " + last_failure_ : "");
  }));
}

}  // namespace trainyard::kube
