#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainyard::metrics {

/// What is known of one optimizer step, over all ranks.
struct StepRecord {
  int64_t step = 0;                 ///< 1 = the first
  double loss = 0;                  ///< mean over the step's valid tokens
  std::optional<double> grad_norm;  ///< global L2 norm before clipping; none where the step was skipped
  double lr = 0;                    ///< used in this step
  int64_t tokens = 0;               ///< seen since the start of training, this step included
  double tokens_per_second = 0;     ///< of all ranks together
  double samples_per_second = 0;    ///< rows of the batch
  std::optional<double> mfu;        ///< fraction of the peak; none where no peak is known
  uint64_t memory_bytes = 0;        ///< the largest of any rank
  double data_wait_ms = 0;          ///< parts of the step's time: train/step_times.h
  double compute_ms = 0;
  double communication_wait_ms = 0;
  double optimizer_ms = 0;
  double checkpoint_ms = 0;
  std::optional<int> slow_rank;               ///< the one that the others wait for, where one stands out
  std::optional<double> validation_loss;      ///< after this step, where one was due
  std::optional<double> validation_accuracy;  ///< of a classifier
  std::optional<double> loss_scale;           ///< of its gradients; none where losses are not scaled
  bool skipped = false;                       ///< the gradients overflowed and nothing was updated
  double time = 0;                            ///< seconds since 1970, at the end of the step
  // These are for the line alone.
  int64_t epoch = 0;            ///< 0 = the first
  int64_t step_of_epoch = 0;    ///< 0 = the first
  int64_t epoch_samples = 0;    ///< rows of this epoch that came before this step
  int64_t dataset_size = 0;     ///< rows of an epoch
  double epoch_percent = 0;     ///< steps of this epoch that came before this one
  int ranks = 1;                ///< of the job
  double flops_per_second = 0;  ///< of all ranks together
};

/// One line of metrics.jsonl without its line feed: a JSON object with the fields above up to time as keys, in this
/// order, numbers with all the digits that bring back the same double. grad_norm and mfu are null where there is none,
/// and what is not finite; slow_rank, those of a validation and loss_scale are left out, and skipped with the latter.
std::string to_json_line(const StepRecord& record);

/// The numbers of such a line but step and time, those that are there, by name.
std::vector<std::pair<std::string, double>> scalars_of(const StepRecord& record);

/// The step of such a line; none where `line` is not a whole one.
std::optional<int64_t> step_of_json_line(std::string_view line);

}  // namespace trainyard::metrics
