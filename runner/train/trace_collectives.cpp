#include "train/trace_collectives.h"

#include <chrono>

namespace trainyard::train {

TraceCollectives::TraceCollectives(comm::Communicator& world, metrics::Trace& trace) : world_(world) {
  const int track = trace.track("communication");
  const auto start = std::chrono::steady_clock::now() - std::chrono::nanoseconds(trace.now());
  before_ = world.on_collective(nullptr);
  world.on_collective([&trace, track, start, before = before_](const comm::CollectiveRecord& record) {
    if (before) before(record);
    const auto since_start = [&](auto time) { return std::chrono::nanoseconds(time - start).count(); };
    trace.add({.name = record.name + " " + record.label,
               .category = record.name == "all_gather" ? "gather" : "reduce",
               .track = track,
               .begin = since_start(record.begun),
               .end = since_start(record.ended),
               .values = {{"bytes", static_cast<int64_t>(record.bytes)},
                          {"queued_ns", std::chrono::nanoseconds(record.begun - record.issued).count()}}});
  });
}

}  // namespace trainyard::train
