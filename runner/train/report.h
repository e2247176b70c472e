#pragma once

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

#include "config/config.h"
#include "metrics/line.h"
#include "metrics/metrics_file.h"
#include "metrics/progress.h"
#include "metrics/progress_post.h"
#include "metrics/prometheus_endpoint.h"
#include "metrics/tensorboard.h"
#include "metrics/throughput.h"
#include "train/pace.h"
#include "train/trainer.h"
#include "train/world.h"

namespace trainyard::train {

/// What a report says of a run beyond its steps.
struct Workload {
  int64_t total_steps = 0;
  int64_t sequences_per_step = 0;
  double flops_per_row = 0;
  std::optional<Pace> pace;  ///< none: the data has no epochs
  int64_t sequences_per_epoch = 0;
  bool is_classifier = false;        ///< of images, whose validations tell an accuracy
  std::string strategy;              ///< as PyTorch spells it: FULL_SHARD
  std::optional<double> peak_flops;  ///< of all ranks together; none: MFU is not given
};

/// Tells people, files and the operator how training goes: the line, the bar, metrics.jsonl,
/// TensorBoard, Prometheus, the job's progress. For rank 0 alone.
class Report {
 public:
  /// Lines of metrics.jsonl after `resumed_step` are cut off. Throws InputError where the folder cannot be written.
  Report(const config::Metrics& settings, Workload workload, const Progress& resumed, const World& world);

  void step(const StepResult& result, int64_t tokens_so_far);
  /// A checkpoint of this step is committed.
  void saved(int64_t step);
  /// A line that stays, between those of the steps.
  void say(const std::string& line) { display_.line(line); }
  /// Time that was no training: a checkpoint, a validation.
  void exclude(std::chrono::steady_clock::duration spent) { meter_.exclude(spent); }
  /// Takes the bar away while others write, or at the end.
  void pause() { display_.clear(); }

 private:
  config::Metrics settings_;
  Workload workload_;
  int ranks_;
  metrics::LineFormat line_, validation_line_;
  metrics::MetricsFile file_;
  metrics::ProgressDisplay display_;
  metrics::ThroughputMeter meter_;
  std::optional<metrics::TensorBoard> tensorboard_;
  std::optional<metrics::PrometheusEndpoint> endpoint_;
  std::optional<metrics::ProgressPoster> poster_;
  SlowRankNews slow_;
};

}  // namespace trainyard::train
