#include "run/checkpoints.h"

#include <string_view>
#include <utility>

#include "metrics/trace.h"
#include "train/snapshot.h"

namespace trainyard::train {
namespace {

checkpoint::SaverOptions saver_options(const config::Checkpoint& settings, checkpoint::Naming naming,
                                       const World& world) {
  return {.folder = settings.dir,
          .naming = std::move(naming),
          .keep = settings.keep,
          .timeout = settings.timeout,
          .rank = world.comm.rank(),
          .world = world.comm.world(),
          .generation = world.generation,
          .job = world.job};
}

}  // namespace

checkpoint::Naming naming_of(const config::Checkpoint& settings, const std::string& strategy) {
  using checkpoint::Naming;
  constexpr std::string_view kPlaceholder = "{strategy}";
  std::string name = settings.name;
  if (const size_t at = name.find(kPlaceholder); at != std::string::npos)
    name.replace(at, kPlaceholder.size(), strategy);
  return Naming(name, settings.overwrite ? Naming::Folders::One : Naming::Folders::OfSteps);
}

Checkpoints::Checkpoints(const config::Checkpoint& settings, checkpoint::Naming naming, const World& world,
                         checkpoint::Gather gather, Told told)
    : settings_(settings),
      is_main_(world.is_main()),
      gather_(std::move(gather)),
      told_(std::move(told)),
      saver_(saver_options(settings, std::move(naming), world), world.store) {
  if (settings_.async) background_ = std::make_unique<checkpoint::BackgroundSaver>(saver_);
}

bool Checkpoints::is_full(Occasion occasion) const {
  if (occasion == Occasion::LastStep && settings_.final_state_dict != config::FinalStateDict::Same)
    return settings_.final_state_dict == config::FinalStateDict::Full;
  return settings_.state_dict == config::StateDict::Full;
}

void Checkpoints::prepare(const checkpoint::Snapshot& snapshot) {
  if (background_ && !is_full(Occasion::OnTheWay)) background_->reserve(snapshot);
}

void Checkpoints::save(const checkpoint::Snapshot& whole, Occasion occasion) {
  finish();
  const bool drops_optimizer = occasion == Occasion::LastStep && settings_.final_model_only;
  const checkpoint::Snapshot snapshot = drops_optimizer ? model_only(whole) : whole;
  if (!background_ || is_full(occasion)) {
    const metrics::TraceSpan span("save", "checkpoint");
    return tell(is_full(occasion) ? saver_.save_full(snapshot, gather_) : saver_.save(snapshot));
  }
  const metrics::TraceSpan span("copy for the checkpoint", "checkpoint");
  background_->start(snapshot);
}

void Checkpoints::before_update() {
  if (background_) background_->behind_copies();
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
