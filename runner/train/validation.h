#pragma once

#include <memory>

#include <nlohmann/json.hpp>

#include "assemble/world.h"
#include "config/config.h"
#include "data/loader.h"
#include "models/model.h"
#include "shard/engine.h"
#include "tokenizer/tokenizer.h"
#include "train/trainer.h"

namespace trainyard::train {

/// The loss on held-out data, on the way of a run. It leaves training as it was, to the bit: it has a loader of its
/// own, records no tape (so nothing is drawn at random and no gradient is touched), and gives gathered parameters back.
class Validation {
 public:
  /// Each validation is `steps` batches of `loader`, from where it stands now; 0: of one pass over its data.
  Validation(std::unique_ptr<data::Loader> loader, int64_t steps);

  /// It goes over the held-out data of all ranks. Collective; no micro-batch is under way. Throws InputError where no
  /// position has a target.
  Validated run(comm::Communicator& world, models::Model& model, shard::Engine& engine);

 private:
  std::unique_ptr<data::Loader> loader_;
  nlohmann::json begin_;
  int64_t steps_;
};

}  // namespace trainyard::train
