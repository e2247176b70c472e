#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "assemble/run_spec.h"
#include "assemble/world.h"
#include "config/load.h"
#include "models/model.h"
#include "shard/engine.h"
#include "tensor/stream_graph.h"

namespace trainyard::train {

/// What device.cuda_graphs comes to in this run. Throws InputError where it asks for what the run cannot have: with
/// several ranks, or on a CPU.
bool has_graphs(const config::Loaded& loaded, const RunSpec& spec, const World& world);

/// Forward and backward of training steps as one graph of the device's work, where steps are alike: the second of two
/// such steps in a row is captured, and from then on the host launches it with the values of the next.
///   One rank, whose shards and activations stay on the device; one thread.
class StepGraph {
 public:
  using MicroBatches = std::vector<models::Inputs>;
  /// Forward and backward of the micro-batches, each with the loss times `scale`.
  using Compute = std::function<std::vector<ops::Loss>(const MicroBatches&, float scale)>;

  StepGraph(shard::Engine& engine, Compute compute) : engine_(engine), compute_(std::move(compute)) {}

  /// It does what `compute` does. The losses are there until the next step is run.
  std::vector<ops::Loss> run(MicroBatches micro_batches, float scale);

 private:
  void capture();

  shard::Engine& engine_;
  Compute compute_;
  MicroBatches micro_batches_;  // of the latest step; those that the graph reads
  float scale_ = 0;
  std::vector<ops::Loss> losses_;  // of the graph
  std::unique_ptr<StreamGraph> graph_;
  bool is_logged_ = false;
};

}  // namespace trainyard::train
