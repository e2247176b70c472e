#include "run/profiler.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <system_error>
#include <utility>

namespace trainyard::train {
namespace fs = std::filesystem;

Profiler::Profiler(Options options, comm::Communicator& world, Device device)
    : options_(std::move(options)), world_(world), device_(device) {}

Profiler::~Profiler() = default;  // a trace that is not complete is not written

void Profiler::steps_done(int64_t step) {
  const int64_t after = step % options_.interval;
  if (trace_ && after == 0) end(step);
  if (!trace_ && options_.interval - after <= options_.steps) trace_.emplace(world_, device_);
}

/// A full disk takes a trace, not the run.
void Profiler::end(int64_t step) {
  std::error_code error;
  fs::create_directories(options_.folder, error);
  try {
    trace_->write(file_of(step));
  } catch (const fs::filesystem_error& failure) {
    spdlog::warn("the trace up to step {} could not be written: {}", step, failure.what());
  }
  trace_.reset();
  fs::remove(file_of(step - options_.interval * options_.keep), error);
}

fs::path Profiler::file_of(int64_t step) const {
  return options_.folder / fmt::format("step-{}.rank-{}.json", step, world_.rank());
}

}  // namespace trainyard::train
