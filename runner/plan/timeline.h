#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "assemble/sharded_model.h"
#include "comm/dry_run.h"
#include "plan/hardware.h"
#include "tensor/dry_run.h"

namespace trainyard::train {

/// Collectives of one kind in a step.
struct Traffic {
  int64_t messages = 0;
  double bytes = 0;  ///< of the whole side: what a gather makes and a reduce-scatter takes
};

/// The clock of a dry run: what rank 0 computes stands on one line, what it exchanges on another for each dimension of
/// the mesh, what it copies between host and device on one for each direction, and a wait brings the first up to
/// another. One thread.
///   an operation    max(matrix flops / (peak of its dtype · fraction), bytes / (memory bandwidth · fraction), least
///   time) a collective    share · bytes · (n − 1)/n / (bandwidth · fraction) + least time; share 2 for an all-reduce,
///   else 1; of a shift bytes / (bandwidth · fraction) + least time
class Timeline final : public DryRun, public comm::DryNetwork {
 public:
  Timeline(const Hardware& hardware, const Placement& placement, MeshSize mesh)
      : hardware_(hardware), placement_(placement), mesh_(mesh) {}

  void operation(const OperationCost& cost) override;
  [[nodiscard]] bool on_cpu() const override { return hardware_.is_cpu; }
  [[nodiscard]] size_t device_memory() const override { return hardware_.memory; }
  void transfer(size_t bytes) override;
  void begin_side_work(int lane) override;
  double end_side_work() override;
  void wait_until(double seconds) override { now_ = std::max(now_, seconds); }
  int64_t issue(const comm::DryCollective& collective) override;
  void wait(int64_t collective) override;
  [[nodiscard]] int size_of(const std::string& name) const override;

  /// A new step: counts begin again. Collectives under way stay so.
  void restart();
  [[nodiscard]] double seconds() const { return now_ - begin_; }
  [[nodiscard]] double waited_seconds() const { return waited_; }
  [[nodiscard]] double matrix_flops() const { return matrix_flops_; }
  /// The collectives by name, with the dimension where it is a part of the world: "all_gather (shard)".
  [[nodiscard]] const std::map<std::string, Traffic>& traffic() const { return traffic_; }

 private:
  [[nodiscard]] double seconds_of(const comm::DryCollective& collective) const;

  const Hardware& hardware_;
  const Placement placement_;
  const MeshSize mesh_;
  double now_ = 0, begin_ = 0, waited_ = 0, matrix_flops_ = 0;
  std::map<std::string, double> busy_until_;  // by dimension
  std::map<int, double> side_busy_until_;     // by lane
  struct {
    int lane;
    double begun_at;  // of what goes on beside it
  } side_{};
  std::vector<double> ends_;  // by collective
  std::map<std::string, Traffic> traffic_;
};

}  // namespace trainyard::train
