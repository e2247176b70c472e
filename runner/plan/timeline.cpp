#include "plan/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace trainyard::train {
namespace {

std::string kind_of(const comm::DryCollective& collective) {
  if (collective.label == "agree" || collective.label == "totals") return "a few numbers";  // of train/trainer.cpp
  if (collective.dimension.empty()) return collective.name;
  return fmt::format("{} ({})", collective.name, collective.dimension);
}

/// The distance in number between neighbours of the dimension; 1 in the whole world.
int stride_of(const std::string& name, const MeshSize& mesh) {
  for (const shard::Dimension dimension : shard::kDimensions)
    if (name == shard::name_of(dimension)) return mesh.stride_of(dimension);
  return name == "post_forward" ? mesh.stride_of(shard::Dimension::Shard) : 1;
}

}  // namespace

void Timeline::operation(const OperationCost& cost) {
  const double half_or_float = cost.factor_bytes == 2 ? hardware_.half_flops : hardware_.float_flops;
  const double peak = cost.factor_bytes == 1 ? hardware_.float8_flops : half_or_float;
  const double matrix = cost.matrix_flops / (peak * hardware_.matrix_fraction);
  const double bandwidth = cost.on_host && !hardware_.is_cpu ? hardware_.host_bandwidth : hardware_.memory_bandwidth;
  const double memory = cost.bytes / (bandwidth * hardware_.memory_fraction);
  now_ += std::max({matrix, memory, hardware_.operation_seconds});
  matrix_flops_ += cost.matrix_flops;
}

void Timeline::transfer(size_t bytes) {
  now_ += static_cast<double>(bytes) / (hardware_.bus_bandwidth * hardware_.link_fraction);
}

void Timeline::begin_side_work(int lane) {
  side_ = {lane, now_};
  now_ = std::max(now_, side_busy_until_[lane]);
}

double Timeline::end_side_work() {
  side_busy_until_[side_.lane] = now_;
  return std::exchange(now_, side_.begun_at);
}

int64_t Timeline::issue(const comm::DryCollective& collective) {
  const auto number = static_cast<int64_t>(ends_.size());
  if (collective.world == 1) {
    ends_.push_back(now_);
    return number;
  }
  double& busy_until = busy_until_[collective.dimension];
  busy_until = std::max(busy_until, now_) + seconds_of(collective);
  ends_.push_back(busy_until);
  Traffic& traffic = traffic_[kind_of(collective)];
  ++traffic.messages;
  traffic.bytes += static_cast<double>(collective.bytes);
  return number;
}

void Timeline::wait(int64_t collective) {
  const double end = ends_.at(static_cast<size_t>(collective));
  waited_ += std::max(end - now_, 0.0);
  now_ = std::max(now_, end);
}

/// A ring over nodes has as many lanes as the dimension has ranks in a node, each with a network adapter of its own.
double Timeline::seconds_of(const comm::DryCollective& collective) const {
  const int stride = stride_of(collective.dimension, mesh_);
  const int in_node = std::clamp(placement_.ranks_per_node / stride, 1, collective.world);
  const double between = hardware_.network_bandwidth * in_node;
  const double bandwidth = in_node == collective.world
                               ? hardware_.link_bandwidth
                               : (in_node == 1 ? between : std::min(between, hardware_.link_bandwidth));
  const double ranks = collective.world;
  const double own = static_cast<double>(collective.bytes);
  const double of_all = own * (ranks - 1) / ranks;
  const double sent = collective.name == "shift" ? own : collective.name == "all_reduce" ? 2 * of_all : of_all;
  return sent / (bandwidth * hardware_.link_fraction) + hardware_.collective_seconds;
}

int Timeline::size_of(const std::string& name) const {
  for (const shard::Dimension dimension : shard::kDimensions)
    if (name == shard::name_of(dimension)) return mesh_.of(dimension);
  if (name == "post_forward") return mesh_.post_forward;
  throw std::logic_error(fmt::format("a dry run has no dimension '{}'", name));
}

void Timeline::restart() {
  begin_ = now_;
  waited_ = matrix_flops_ = 0;
  traffic_.clear();
}

}  // namespace trainyard::train
