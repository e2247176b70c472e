#include "train/checkpoints.h"

#include "metrics/trace.h"

namespace trainyard::train {
namespace {

checkpoint::SaverOptions saver_options(const config::Checkpoint& settings, const World& world) {
  return {.folder = settings.dir,
          .keep = settings.keep,
          .timeout = settings.timeout,
          .rank = world.comm.rank(),
          .world = world.comm.world(),
          .generation = world.generation,
          .job = world.job};
}

}  // namespace

Checkpoints::Checkpoints(const config::Checkpoint& settings, const World& world, Told told)
    : is_main_(world.is_main()), told_(std::move(told)), saver_(saver_options(settings, world), world.store) {
  if (settings.async) background_ = std::make_unique<checkpoint::BackgroundSaver>(saver_);
}

void Checkpoints::prepare(const checkpoint::Snapshot& snapshot) {
  if (background_) background_->reserve(snapshot);
}

void Checkpoints::save(const checkpoint::Snapshot& snapshot) {
  if (!background_) {
    const metrics::TraceSpan span("save", "checkpoint");
    return tell(saver_.save(snapshot));
  }
  finish();
  const metrics::TraceSpan span("copy for the checkpoint", "checkpoint");
  background_->start(snapshot);
}

void Checkpoints::poll() {
  if (!background_) return;
  if (const auto result = background_->poll()) tell(*result);
}

void Checkpoints::finish() {
  if (!background_) return;
  const metrics::TraceSpan span("wait for the checkpoint before", "checkpoint");
  if (const auto result = background_->wait()) tell(*result);
}

void Checkpoints::tell(const checkpoint::SaveResult& result) {
  error_ = result.reason;
  if (is_main_) checkpoint::log_result(result);
  told_(result);
}

}  // namespace trainyard::train
