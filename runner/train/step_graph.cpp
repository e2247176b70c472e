#include "train/step_graph.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "metrics/trace.h"

namespace trainyard::train {

namespace {

/// Why a run can have no graph; empty: it can.
std::string obstacle(const RunSpec& spec, const World& world) {
  if (world.device.kind == DeviceKind::Cpu) return "this run computes on the CPU";
  if (const int ranks = world.comm.world(); ranks > 1)
    return fmt::format("this run has {} ranks, and their collectives cannot be part of a graph", ranks);
  if (spec.offloads()) return "tensors go by way of the host";
  return "";
}

}  // namespace

bool has_graphs(const config::Loaded& loaded, const RunSpec& spec, const World& world) {
  const config::CudaGraphs wanted = loaded.config.device.cuda_graphs;
  if (wanted == config::CudaGraphs::Never) return false;
  const std::string why = obstacle(spec, world);
  if (wanted == config::CudaGraphs::Always && !why.empty())
    throw InputError(fmt::format("{} is always, but {}; use auto", loaded.subject("device.cuda_graphs"), why));
  return why.empty();
}

std::vector<ops::Loss> StepGraph::run(MicroBatches micro_batches, float scale) {
  const bool is_alike = scale == scale_ && std::ranges::equal(micro_batches, micro_batches_, &models::Inputs::is_like);
  if (!is_alike) {
    graph_.reset();  // a step of another shape has need of its memory
    losses_.clear();
    micro_batches_ = std::move(micro_batches);
    scale_ = scale;
    return compute_(micro_batches_, scale_);
  }
  for (size_t i = 0; i < micro_batches.size(); ++i) micro_batches_[i].copy_values(micro_batches[i]);
  if (!graph_) capture();
  const metrics::TraceSpan span("graph", "forward");
  graph_->launch();
  engine_.accept_gradients();
  return losses_;
}

void StepGraph::capture() {
  std::vector<std::shared_ptr<Storage>> gradients;
  for (const auto& group : engine_.groups())
    if (group->trains()) gradients.push_back(group->shard_gradient().storage());
  const Device device = engine_.policy().device;
  graph_ = std::make_unique<StreamGraph>(
      device, [this] { losses_ = compute_(micro_batches_, scale_); }, std::move(gradients));
  if (!std::exchange(is_logged_, true))
    spdlog::info("forward and backward are one CUDA graph of {} operations, where steps are alike",
                 graph_->operations());
}

}  // namespace trainyard::train
