#include "metrics/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/files.h"

namespace trainyard::metrics {
namespace {

thread_local Trace* attached_trace = nullptr;
thread_local int attached_track = 0;

/// `text` in quotes; bytes that are no UTF-8 (a file's name) become U+FFFD.
std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

double microseconds(int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / 1000;
}

std::string metadata(const char* kind, int rank, int track, const std::string& name) {
  return fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", kind, rank, track,
                     json_text(name));
}

std::string event(const Span& span, int rank) {
  std::vector<std::string> values;
  for (const auto& [key, number] : span.values) values.push_back(fmt::format(R"("{}":{})", key, number));
  return fmt::format(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
                     json_text(span.name), span.category, rank, span.track, microseconds(span.begin),
                     microseconds(span.end - span.begin), fmt::join(values, ","));
}

}  // namespace

Trace::Trace(int rank, size_t most_spans) : rank_(rank), most_spans_(most_spans) {}

int Trace::track(const std::string& name) {
  const MutexLock lock(mutex_);
  const auto found = std::ranges::find(tracks_, name);
  const auto index = static_cast<int>(found - tracks_.begin());
  if (found == tracks_.end()) tracks_.push_back(name);
  return index;
}

int64_t Trace::time_of(std::chrono::steady_clock::time_point point) const {
  return std::chrono::nanoseconds(point - start_).count();
}

void Trace::add(Span span) {
  const MutexLock lock(mutex_);
  if (spans_.size() < most_spans_)
    spans_.push_back(std::move(span));
  else
    ++dropped_;
}

std::vector<Span> Trace::spans() const {
  const MutexLock lock(mutex_);
  return spans_;
}

size_t Trace::dropped() const {
  const MutexLock lock(mutex_);
  return dropped_;
}

std::string Trace::to_json() const {
  const MutexLock lock(mutex_);
  // Written by hand: a tree of half a million objects would take some gigabytes on its way to text.
  std::string json = "{\"traceEvents\":[\n" + metadata("process_name", rank_, 0, fmt::format("rank {}", rank_));
  for (size_t i = 0; i < tracks_.size(); ++i)
    json += ",\n" + metadata("thread_name", rank_, static_cast<int>(i), tracks_[i]);
  for (const Span& span : spans_) json += ",\n" + event(span, rank_);
  return json + fmt::format("\n],\"displayTimeUnit\":\"ms\",\"otherData\":{{\"dropped_spans\":{}}}}}\n", dropped_);
}

void Trace::write(const std::filesystem::path& path) const {
  write_file_atomically(path, to_json());
}

AttachTrace::AttachTrace(Trace* trace, const std::string& track)
    : before_(attached_trace), track_before_(attached_track) {
  attached_trace = trace;
  if (trace) attached_track = trace->track(track);
}

AttachTrace::~AttachTrace() {
  attached_trace = before_;
  attached_track = track_before_;
}

TraceSpan::TraceSpan(std::string_view name, const char* category, std::string_view detail) : trace_(attached_trace) {
  if (!trace_) return;
  span_.name = detail.empty() ? std::string(name) : fmt::format("{} {}", name, detail);
  span_.category = category;
  span_.track = attached_track;
  span_.begin = trace_->now();
}

TraceSpan::~TraceSpan() {
  if (!trace_) return;
  span_.end = trace_->now();
  trace_->add(std::move(span_));
}

void TraceSpan::value(const char* key, int64_t number) {
  if (trace_) span_.values.emplace_back(key, number);
}

std::vector<TraceTotal> summarize(std::vector<Span> spans) {
  // Outer before inner: by begin, and of two that begin together the longer first.
  std::ranges::sort(spans, [](const Span& a, const Span& b) {
    return std::tuple(a.track, a.begin, -a.end) < std::tuple(b.track, b.begin, -b.end);
  });
  std::map<std::pair<std::string, std::string>, TraceTotal> totals;
  const auto total_of = [&](const Span& span) -> TraceTotal& { return totals[{span.category, span.name}]; };
  std::vector<const Span*> open;  // those that contain the current one, outermost first
  for (const Span& span : spans) {
    while (!open.empty() && (open.back()->track != span.track || open.back()->end <= span.begin)) open.pop_back();
    const int64_t duration = span.end - span.begin;
    if (!open.empty()) total_of(*open.back()).self_nanoseconds -= duration;
    TraceTotal& total = total_of(span);
    ++total.count;
    total.total_nanoseconds += duration;
    total.self_nanoseconds += duration;
    open.push_back(&span);
  }
  std::vector<TraceTotal> result;
  for (auto& [key, total] : totals) {
    total.category = key.first;
    total.name = key.second;
    result.push_back(std::move(total));
  }
  std::ranges::stable_sort(result, std::greater<>(), &TraceTotal::self_nanoseconds);
  return result;
}

}  // namespace trainyard::metrics
