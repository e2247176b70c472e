#pragma once

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "assemble/pace.h"
#include "assemble/world.h"
#include "config/config.h"
#include "metrics/folder_claim.h"
#include "metrics/line.h"
#include "metrics/metrics_file.h"
#include "metrics/progress.h"
#include "metrics/progress_post.h"
#include "metrics/prometheus_endpoint.h"
#include "metrics/tensorboard.h"
#include "metrics/throughput.h"
#include "run/collective_summary.h"
#include "train/trainer.h"

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
  std::vector<metrics::ConfigFile> config;  ///< what the run was configured by
};

/// Tells people, files and the operator how training goes: the line, the bar, metrics.jsonl,
/// TensorBoard, Prometheus, the job's progress. For rank 0 alone.
class Report {
 public:
  /// Lines of metrics.jsonl after `resumed_step` are cut off. Throws InputError where the folder cannot be written.
  /// `claim` is on that folder: without it nothing is written there.
  Report(const config::Metrics& settings, Workload workload, const Progress& resumed, const World& world,
         metrics::FolderClaim& claim);

  void step(const StepResult& result, int64_t tokens_so_far);
  /// A checkpoint of this step is committed.
  void saved(int64_t step);
  /// It could not be saved.
  void not_saved(int64_t step, const std::string& why);
  /// How far the run came, as the operator is told it.
  [[nodiscard]] std::string last_word() const { return metrics::to_json(progress_); }
  /// A line that stays, between those of the steps.
  void say(const std::string& line) { display_.line(line); }
  /// Time that was no training: a checkpoint, a validation.
  void exclude(std::chrono::steady_clock::duration spent) { meter_.exclude(spent); }
  /// Takes the bar away while others write, or at the end.
  void pause() { display_.clear(); }

 private:
  /// A step as files and lines hold it.
  [[nodiscard]] metrics::StepRecord record_of(const StepResult& result, int64_t tokens_so_far,
                                              const metrics::Rates& rates) const;
  void set_rates(metrics::StepRecord& record, const metrics::Rates& rates) const;
  void set_epoch(metrics::StepRecord& record) const;
  /// Writes the step to the files, and gives it to the endpoint and the operator.
  void publish(const metrics::StepRecord& record);
  /// Prints the line of a step, with the mean rates since the line before.
  void print_line(metrics::StepRecord record);
  void note(const std::string& line);

  config::Metrics settings_;
  Workload workload_;
  int ranks_;
  metrics::FolderClaim& claim_;
  metrics::LineFormat line_, validation_line_;
  metrics::MetricsFile file_;
  metrics::ProgressDisplay display_;
  metrics::ThroughputMeter meter_;
  std::optional<metrics::TensorBoard> tensorboard_;
  std::optional<metrics::PrometheusEndpoint> endpoint_;
  metrics::JobProgress progress_;  ///< as the poster has it, where there is one
  std::optional<metrics::ProgressPoster> poster_;
  SlowRankNews slow_;
  std::optional<CollectiveSummary> collectives_;  ///< where NCCL_DEBUG asks for it
};

}  // namespace trainyard::train
