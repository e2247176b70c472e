#include "train/report.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>

#include "metrics/mfu.h"

namespace trainyard::train {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::optional<std::filesystem::path> tensorboard_folder(const config::Metrics& settings) {
  if (settings.tensorboard.empty() || settings.tensorboard == "false") return std::nullopt;
  if (settings.tensorboard == "true") return std::filesystem::path(settings.dir) / "tensorboard";
  return settings.tensorboard;
}

std::string_view line_of(const config::Metrics& settings, const Workload& workload) {
  return settings.line.empty() && workload.is_classifier ? metrics::kImagesLine : settings.line;
}

std::string_view validation_line_of(const config::Metrics& settings, const Workload& workload) {
  if (!settings.validation_line.empty()) return settings.validation_line;
  return workload.is_classifier ? metrics::kAccuracyLine : metrics::kValidationLine;
}

}  // namespace

Report::Report(const config::Metrics& settings, Workload workload, const Progress& resumed, const World& world)
    : settings_(settings),
      workload_(workload),
      ranks_(world.comm.world()),
      line_(line_of(settings, workload_), workload_.strategy),
      validation_line_(validation_line_of(settings, workload_), workload_.strategy),
      file_(settings.dir, resumed.step),
      display_(stdout, metrics::ProgressDisplay::mode_of(stdout)),
      meter_(std::chrono::steady_clock::now()) {
  const int64_t checkpoint = resumed.step > 0 ? resumed.step : -1;
  if (const auto folder = tensorboard_folder(settings)) tensorboard_.emplace(*folder, resumed.step);
  if (settings.port > 0) {
    endpoint_.emplace(settings.port, world.comm.world(), workload.total_steps);
    endpoint_->checkpoint(checkpoint);
  }
  if (!world.progress) return;
  poster_.emplace(
      *world.progress,
      metrics::JobProgress{.step = resumed.step, .total_steps = workload.total_steps, .checkpoint_step = checkpoint},
      world.silent_ranks);
}

void Report::step(const StepResult& result, int64_t tokens_so_far) {
  const auto now = std::chrono::steady_clock::now();
  const metrics::Rates rates = meter_.step(now, result.tokens, workload_.sequences_per_step);
  metrics::StepRecord record{
      .step = result.step,
      .loss = result.loss,
      .grad_norm = result.skipped ? std::nullopt : std::optional(result.grad_norm),
      .lr = result.lr,
      .tokens = tokens_so_far,
      .tokens_per_second = rates.tokens_per_second,
      .samples_per_second = rates.samples_per_second,
      .mfu = metrics::mfu(workload_.flops_per_row, rates.samples_per_second, workload_.peak_flops),
      .memory_bytes = result.memory_bytes,
      .data_wait_ms = result.times.data_wait,
      .compute_ms = result.times.compute,
      .communication_wait_ms = result.times.communication,
      .optimizer_ms = result.times.optimizer,
      .checkpoint_ms = result.times.checkpoint,
      .slow_rank = result.slow ? std::optional(result.slow->rank) : std::nullopt,
      .validation_loss = result.validated ? std::optional(result.validated->loss) : std::nullopt,
      .validation_accuracy = result.validated ? result.validated->accuracy : std::nullopt,
      .loss_scale = result.loss_scale,
      .skipped = result.skipped,
      .time = seconds_since_1970(),
      .ranks = ranks_,
      .flops_per_second = workload_.flops_per_row * rates.samples_per_second};
  if (const auto& pace = workload_.pace) {
    record.epoch = pace->epochs(result.step - 1);
    record.step_of_epoch = pace->steps_of_epoch(result.step - 1);
    record.epoch_samples = std::min(record.step_of_epoch * workload_.sequences_per_step, workload_.sequences_per_epoch);
    record.dataset_size = workload_.sequences_per_epoch;
    record.epoch_percent =
        100.0 * static_cast<double>(record.step_of_epoch) / static_cast<double>(pace->steps_an_epoch());
  }
  file_.append(record);
  if (tensorboard_) tensorboard_->append(record);
  if (endpoint_) endpoint_->step(record);
  slow_.step(result.slow);
  if (poster_) poster_->step(result.step, result.loss, rates.tokens_per_second);

  if (result.skipped) {
    display_.clear();
    spdlog::warn("step {} is skipped: its gradients overflowed at loss scale {}, which is {} from now on", result.step,
                 *result.loss_scale, result.next_loss_scale);
  }

  const bool is_last = result.step == workload_.total_steps;
  if (line_.is_due(record, settings_.interval) || is_last) {
    const metrics::Rates mean = meter_.since_last_line();
    record.tokens_per_second = mean.tokens_per_second;
    record.samples_per_second = mean.samples_per_second;
    record.flops_per_second = workload_.flops_per_row * mean.samples_per_second;
    record.mfu = metrics::mfu(workload_.flops_per_row, mean.samples_per_second, workload_.peak_flops);
    display_.line(line_.format(record) + (record.skipped ? "  (skipped: its gradients overflowed)" : ""));
    if (const std::string news = slow_.at_line(); !news.empty()) {
      display_.clear();
      spdlog::warn(news);
    }
  }
  if (result.validated) display_.line(validation_line_.format(record));
  display_.update({.step = result.step,
                   .steps = workload_.total_steps,
                   .loss = result.loss,
                   .tokens_per_second = rates.tokens_per_second,
                   .unit = workload_.is_classifier ? "images" : "tokens",
                   .remaining = meter_.remaining(workload_.total_steps - result.step)},
                  now);
  if (is_last) display_.clear();
}

void Report::saved(int64_t step) {
  if (poster_) poster_->checkpoint(step);
  if (endpoint_) endpoint_->checkpoint(step);
}

}  // namespace trainyard::train
