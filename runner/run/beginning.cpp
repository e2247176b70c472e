#include "run/beginning.h"

#include <functional>
#include <string>

#include "assemble/exchange.h"
#include "checkpoint/manifest.h"
#include "config/check.h"

namespace trainyard::train {
namespace {

using Find = std::function<std::optional<checkpoint::Checkpoint>(checkpoint::Agreement& ranks)>;

/// The ranks of a run, who look for a checkpoint together.
class Search {
 public:
  Search(const config::Checkpoint& settings, const World& world)
      : settings_(settings),
        world_(world),
        ranks_(world.store, "resume", world.comm.rank(), world.comm.world(), settings.timeout) {}

  std::optional<checkpoint::Checkpoint> find(const Find& look) {
    return settings_.broadcast_from_rank0 && world_.comm.world() > 1 ? find_on_rank_0(look) : look(ranks_);
  }

  std::optional<checkpoint::Checkpoint> open(const std::string& given) {
    return find([&](checkpoint::Agreement& ranks) { return checkpoint::open_checkpoint(given, ranks); });
  }

 private:
  std::optional<checkpoint::Checkpoint> find_on_rank_0(const Find& look);

  const config::Checkpoint& settings_;
  const World& world_;
  checkpoint::Agreement ranks_;
};

std::optional<checkpoint::Checkpoint> Search::find_on_rank_0(const Find& look) {
  std::optional<checkpoint::Checkpoint> seen;
  std::string path, manifest;
  on_every_rank(world_, "verifying the checkpoint, which rank 0 reads for all", settings_.timeout,
                [&](const AskedToStop&) {
                  if (!world_.is_main()) return;
                  checkpoint::Agreement alone;
                  seen = look(alone);
                  if (!seen) return;
                  path = seen->path().string();
                  manifest = checkpoint::format_manifest(seen->manifest());
                });
  constexpr const char* kLabel = "the checkpoint of rank 0";
  share_from_rank_0(world_.comm, path, kLabel);
  if (path.empty()) return std::nullopt;
  share_from_rank_0(world_.comm, manifest, kLabel);
  if (!seen) seen.emplace(path, checkpoint::parse_manifest(manifest, path));
  seen->read_for_all(world_.is_main(), [&world = world_](Tensor& rows) { world.comm.broadcast(rows, 0, kLabel).wait(); });
  return seen;
}

/// Where a job is started again it goes on from what it saved itself, whole: a lost pod must not cost the steps since
/// the checkpoint that the job once began from.
std::optional<checkpoint::Checkpoint> saved_by_this_job(const config::Checkpoint& settings,
                                                        const checkpoint::Naming& naming, const World& world,
                                                        Search& search) {
  if (!settings.enabled || !world.may_have_saved || world.job.empty()) return std::nullopt;
  return search.find([&](checkpoint::Agreement& ranks) {
    return checkpoint::find_latest_of(world.job, settings.dir, ranks, naming);
  });
}

}  // namespace

Beginning find_beginning(const config::Checkpoint& settings, const checkpoint::Naming& naming, const World& world) {
  Search search(settings, world);
  if (auto own = saved_by_this_job(settings, naming, world, search))
    return {.checkpoint = std::move(own), .is_own = true};
  const Excluded excluded = excluded_of(settings.exclude);
  if (config::names_checkpoint(settings))
    return {.checkpoint = search.open(settings.resume),
            .excluded = excluded,
            .instead = "name one of this model in checkpoint.resume"};
  const Find newest = [&](checkpoint::Agreement& ranks) {
    return checkpoint::find_latest(settings.dir, ranks, naming);
  };
  if (settings.resume != "never" && settings.enabled)
    if (auto ours = search.find(newest)) return {.checkpoint = std::move(ours), .excluded = excluded};
  if (settings.initial_load_path.empty()) return {};
  constexpr Excluded kAllButTheModel{.optimizer = true, .data = true, .progress = true};
  return {.checkpoint = search.open(settings.initial_load_path),
          .excluded = settings.initial_load_model_only ? kAllButTheModel : excluded,
          .instead = "name one of this model in checkpoint.initial_load_path"};
}

}  // namespace trainyard::train
