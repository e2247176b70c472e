#pragma once

#include <functional>
#include <memory>
#include <string>

#include "assemble/world.h"
#include "checkpoint/background_saver.h"
#include "checkpoint/saver.h"
#include "config/config.h"

namespace trainyard::train {

/// What the checkpoints of a run are called. Throws InputError, naming checkpoint.name, where no folder should be.
/// `strategy`: of RunSpec, for {strategy}.
checkpoint::Naming naming_of(const config::Checkpoint& settings, const std::string& strategy);

/// The checkpoints that a run writes, as its configuration wants them: in the foreground, or behind the steps
/// (checkpoint.async). Collective: every rank calls the same in the same order.
class Checkpoints {
 public:
  /// Called once for every save, when its outcome is known; on the thread that calls below.
  using Told = std::function<void(const checkpoint::SaveResult&)>;

  enum class Occasion { OnTheWay, LastStep };

  /// `gather` is for the full form. Throws InputError as checkpoint::Saver does.
  Checkpoints(const config::Checkpoint& settings, checkpoint::Naming naming, const World& world,
              checkpoint::Gather gather, Told told);
  /// Waits for a save under way.
  ~Checkpoints() = default;

  /// It is called before the first step, and takes what memory saves like this one will need.
  void prepare(const checkpoint::Snapshot& snapshot);
  /// Saves, or starts to, once the save before is done. The full form is gathered, and so saved in the foreground.
  void save(const checkpoint::Snapshot& snapshot, Occasion occasion);
  /// It is called before weights and moments change, on the stream that changes them. They change only once a save has
  /// copied them.
  void before_update();
  /// Tells of a save that has ended meanwhile.
  void poll();
  /// Waits for a save under way and tells of it.
  void finish();
  /// A rank is lost: nobody waits for its part of a save any more.
  void give_up() { saver_.give_up(); }

  /// Why the latest save whose outcome is known failed; "" where it did not.
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  void tell(const checkpoint::SaveResult& result);

  [[nodiscard]] bool is_full(Occasion occasion) const;

  const config::Checkpoint settings_;
  const bool is_main_;
  checkpoint::Gather gather_;
  Told told_;
  checkpoint::Saver saver_;
  std::unique_ptr<checkpoint::BackgroundSaver> background_;  ///< null: saves are in the foreground
  std::string error_;
};

}  // namespace trainyard::train
