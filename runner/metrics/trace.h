#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/mutex.h"

// Where the time of a rank goes, as a Chrome/Perfetto trace: `trainyard train --profile`.
namespace trainyard::metrics {

/// One thing that took time on one thread.
struct Span {
  std::string name;           ///< "matmul", "all_gather layers.17"
  const char* category = "";  ///< "op", "gather", "reduce", "optimizer", "data", "checkpoint", "device": a literal
  int track = 0;              ///< index of the thread, by its first attach
  int64_t begin = 0;          ///< nanoseconds since the trace began
  int64_t end = 0;
  std::vector<std::pair<const char*, int64_t>> values;  ///< shown with the span: {"bytes", 4096}
};

/// The spans of one rank, from any number of threads at once. Holds the first `most_spans`; the rest are only counted.
class Trace {
 public:
  static constexpr size_t kMostSpans = 500'000;  // some 100 bytes each; a step of a 28-block model makes about 3,000
  explicit Trace(int rank, size_t most_spans = kMostSpans);

  /// The index of the track called `name`, new where there is none.
  int track(const std::string& name);
  /// Nanoseconds since the trace began.
  [[nodiscard]] int64_t time_of(std::chrono::steady_clock::time_point point) const;
  [[nodiscard]] int64_t now() const { return time_of(std::chrono::steady_clock::now()); }
  void add(Span span);

  [[nodiscard]] std::vector<Span> spans() const;
  [[nodiscard]] size_t dropped() const;

  /// The trace as JSON in the Trace Event Format: one process (the rank), one row a track, times in microseconds.
  [[nodiscard]] std::string to_json() const;
  /// Writes it, whole or not at all. Throws std::filesystem::filesystem_error.
  void write(const std::filesystem::path& path) const;

 private:
  const int rank_;
  const size_t most_spans_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  mutable Mutex mutex_;
  std::vector<Span> spans_ GUARDED_BY(mutex_);
  std::vector<std::string> tracks_ GUARDED_BY(mutex_);
  size_t dropped_ GUARDED_BY(mutex_) = 0;
};

/// Lets the spans of this thread go to `trace` until the end of the scope; a null trace leaves recording off.
/// A trace is attached to a thread, because ranks may be threads of one process, and because an op takes tensors and no
/// context.
class AttachTrace {
 public:
  AttachTrace(Trace* trace, const std::string& track);
  ~AttachTrace();
  AttachTrace(const AttachTrace&) = delete;
  AttachTrace& operator=(const AttachTrace&) = delete;

 private:
  Trace* const before_;
  const int track_before_;
};

/// A span from here to the end of the scope. Without an attached trace it costs one thread-local load.
///   const TraceSpan span("matmul", "op");
class TraceSpan {
 public:
  /// `name` may be built from two parts ("all_gather", "layers.17"), so that nothing is put together when off.
  TraceSpan(std::string_view name, const char* category, std::string_view detail = {});
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  /// A number to be shown with the span. `key` is a literal.
  void value(const char* key, int64_t number);

 private:
  Trace* const trace_;
  Span span_;
};

/// Time by name: `self` leaves out what spans inside it on the same track took, so the selves of a track add up.
struct TraceTotal {
  std::string category;
  std::string name;
  int64_t count = 0;
  int64_t total_nanoseconds = 0;
  int64_t self_nanoseconds = 0;
};

/// Totals of `spans`, longest self first. Spans of one track must nest, as scopes do.
std::vector<TraceTotal> summarize(std::vector<Span> spans);

}  // namespace trainyard::metrics
