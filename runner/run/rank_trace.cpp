#include "run/rank_trace.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <mutex>
#include <utility>

#include "base/error.h"

namespace trainyard::train {
namespace {

void warn_once(const std::string& why) {
  static std::once_flag told;
  std::call_once(told, [&] { spdlog::warn("traces are without what the GPU does: {}", why); });
}

}  // namespace

RankTrace::RankTrace(comm::Communicator& world, Device device)
    : world_(world), device_(device), trace_(world.rank()), attach_(&trace_, "compute") {
  look_at_collectives();
  if (device.kind == DeviceKind::Cpu) return;
  try {
    of_device_.emplace(device);
  } catch (const InputError& error) {
    if (device.index == 0) warn_once(error.what());  // what a node's ranks miss they all do
  }
}

void RankTrace::look_at_collectives() {
  const int track = trace_.track("communication");
  before_ = world_.on_collective(nullptr);
  world_.on_collective([this, track, before = before_](const comm::CollectiveRecord& record) {
    if (before) before(record);
    trace_.add({.name = record.name + " " + record.label,
                .category = record.name == "all_gather" ? "gather" : "reduce",
                .track = track,
                .begin = trace_.time_of(record.begun),
                .end = trace_.time_of(record.ended),
                .values = {{"bytes", static_cast<int64_t>(record.bytes)},
                           {"queued_ns", std::chrono::nanoseconds(record.begun - record.issued).count()}}});
  });
}

void RankTrace::add_device() {
  DeviceTrace::Seen seen = of_device_->read();
  of_device_.reset();
  if (seen.dropped > 0) spdlog::warn("the trace is without {} things that the GPU did: it is full", seen.dropped);
  for (DeviceActivity& each : seen.activities) {
    metrics::Span span{.name = std::move(each.name),
                       .category = "device",
                       .track = trace_.track(fmt::format("{} stream {}", to_string(device_), each.stream)),
                       .begin = trace_.time_of(each.begin),
                       .end = trace_.time_of(each.end)};
    if (each.bytes > 0) span.values.emplace_back("bytes", each.bytes);
    trace_.add(std::move(span));
  }
}

void RankTrace::write(const std::filesystem::path& path) {
  if (of_device_) add_device();
  trace_.write(path);
}

}  // namespace trainyard::train
