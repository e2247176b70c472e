#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "assemble/adapters.h"
#include "assemble/exchange.h"
#include "comm/communicator.h"
#include "data/loader.h"
#include "models/model.h"
#include "optim/adamw.h"
#include "optim/loss_scaler.h"
#include "optim/schedule.h"
#include "shard/engine.h"
#include "train/device_times.h"
#include "train/step_graph.h"
#include "train/step_times.h"

namespace trainyard::train {

/// How far training has come: what a checkpoint says and a resumed run goes on from.
struct Progress {
  int64_t step = 0;    ///< steps done
  int64_t tokens = 0;  ///< valid targets seen, over all ranks
};

/// What a model makes of held-out data, over all ranks.
struct Validated {
  double loss = 0;                 ///< as a step's
  std::optional<double> accuracy;  ///< of a classifier: the part of the data that it gets right
};

/// One step as it went, over all ranks.
struct StepResult {
  int64_t step = 0;      ///< 1 = the first
  double loss = 0;       ///< of the global batch, divided by its Model::loss_weight: mostly a mean over valid targets
  double grad_norm = 0;  ///< before clipping, of the loss as it is; not finite where the step was skipped
  double lr = 0;
  int64_t tokens = 0;         ///< valid targets of this step
  uint64_t memory_bytes = 0;  ///< of the device, of the rank that has most
  StepTimes times;
  std::optional<SlowRank> slow;        ///< the rank that the others wait for, where one stands out
  std::optional<Validated> validated;  ///< after this step, where one was due
  std::optional<double> loss_scale;    ///< that its gradients were computed with; none where losses are not scaled
  bool skipped = false;                ///< its gradients overflowed, so nothing was updated
  double next_loss_scale = 1;
};

/// What a run is made of. All of it outlives the trainer; one thread.
struct Parts {
  comm::Communicator& world;
  models::Model& model;
  shard::Engine& engine;
  optim::AdamW& optimizer;
  optim::LossScaler& scaler;
  data::Loader& loader;
  Adapters* adapters = nullptr;  ///< none: the model itself is trained
};

struct Plan {
  int64_t total_steps = 0;
  int64_t accumulation_steps = 1;
  double clip_grad_norm = 1;  ///< 0: none
  optim::Schedule schedule;
  uint64_t dropout_seed = 0;  ///< of the masks of models that drop values while they train
  bool deterministic = true;  ///< equal bits from equal runs, or what is faster without (ops/determinism.h)
  bool graphs = false;        ///< steps that are alike as one graph of the device's work (train/step_graph.h)
};

/// What the loop asks and tells on its way. All ranks get the same results, in the same order: each before anything is
/// saved that it went into.
struct Callbacks {
  /// True once this rank was asked to end (SIGTERM). One rank's yes ends all of them after the same step.
  std::function<bool()> asked_to_stop;
  /// What held-out data says after this step, where that is due; null: never. Changes nothing of training.
  std::function<std::optional<Validated>(int64_t step)> validate;
  std::function<void(const StepResult&)> on_step;
  /// It is called before the weights and the optimizer's state change; null: nothing is to be done.
  std::function<void()> before_update = {};
  /// Whether to save after this step, and the saving; also called for the last step and when stopping.
  std::function<bool(int64_t step)> is_checkpoint_due;
  std::function<void(const Progress&)> save;
};

enum class Outcome { Completed, Stopped };

/// The training loop, the same for one rank and for many: gathering, prefetch, reduction and accumulation of gradients
/// live in shard/, below the model.
///
/// On a device the host stays a step ahead: norm, clipping and whether the gradients are finite are the device's own
/// affair, and a step is reported when the next one is queued. Where losses are scaled the host has to know at once
/// whether a step is skipped, and waits.
class Trainer {
 public:
  Trainer(Parts parts, Plan plan, Callbacks callbacks);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// It trains from `progress` to the last step, or to the step after which some rank wanted to stop, and saves.
  /// Throws NotFiniteError, naming step and first bad tensor, on all ranks alike: at once where the loss is not finite,
  /// and where gradients are not and the scale of the loss cannot be lowered. Where it can, the step is skipped: it
  /// counts, for the schedule too, and its tokens are seen, but the optimizer knows nothing of it.
  Outcome run(Progress& progress);

 private:
  struct Agreed {
    int64_t valid_tokens = 0;  ///< of the step, over all ranks
    double loss_weight = 0;    ///< what its loss is divided by
    bool stop = false;
  };
  struct Input {
    std::vector<data::Batch> micro_batches;
    std::string error;  ///< what kept this rank from having them; "": nothing
  };
  Input next_input();
  /// Throws the first rank's error, on all ranks alike.
  Agreed agree(const Input& input, int64_t step);
  /// A step on its way. At first its result holds what the host knows by itself; wait_for_totals() adds the rest.
  struct Step {
    StepResult result;
    double loss_weight = 0, loss_scale = 0;
    Tensor gradient_squares;  ///< this rank's, of each tensor
    GatheredScalars totals;           ///< of all ranks
    bool is_read = false;
  };
  std::vector<ops::Loss> forward_backward(const std::vector<data::Batch>& micro_batches, double loss_weight);
  std::vector<ops::Loss> compute(const StepGraph::MicroBatches& micro_batches, float scale);
  Step gather_totals(const std::vector<ops::Loss>& losses, int64_t step, const Agreed& agreed);
  Step begin_totals(const std::vector<ops::Loss>& losses, int64_t step, const Agreed& agreed);
  void note_times();
  [[nodiscard]] Device totals_device() const;
  void wait_for_totals(Step& step);
  void report();  ///< the last step, unless that was done
  [[nodiscard]] bool has_overflowed(const StepResult& result) const;
  void require_finite(const Step& step);
  void update(Step& step);
  void save(const Progress& progress);

  Parts parts_;
  Plan plan_;
  Callbacks callbacks_;
  Stopwatch watch_;
  std::optional<DeviceTimes> device_times_;  ///< none: the host computes
  StepTimes own_;  ///< this rank's, as the step goes on; of the update and of saving until they are replaced
  bool reports_late_ = false;  ///< on a device: a step is reported once the next one is queued
  std::optional<Step> unreported_;
  std::optional<StepGraph> graph_;
};

}  // namespace trainyard::train
