#include "run/report.h"

#include <fmt/format.h>
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

Report::Report(const config::Metrics& settings, Workload workload, const Progress& resumed, const World& world,
               metrics::FolderClaim& claim)
    : settings_(settings),
      workload_(workload),
      ranks_(world.comm.world()),
      claim_(claim),
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
  progress_ = {.step = resumed.step, .total_steps = workload_.total_steps, .checkpoint_step = checkpoint};
  if (world.summarizes_collectives) collectives_.emplace(world.comm);
  if (!world.progress) return;
  metrics::ProgressTarget target = *world.progress;
  target.world_size = ranks_;
  poster_.emplace(std::move(target), progress_, world.silent_ranks, metrics::ConfigWatch(workload_.config));
}

metrics::StepRecord Report::record_of(const StepResult& result, int64_t tokens_so_far,
                                      const metrics::Rates& rates) const {
  metrics::StepRecord record{
      .step = result.step,
      .loss = result.loss,
      .grad_norm = result.skipped ? std::nullopt : std::optional(result.grad_norm),
      .lr = result.lr,
      .tokens = tokens_so_far,
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
      .ranks = ranks_};
  set_rates(record, rates);
  set_epoch(record);
  return record;
}

void Report::set_rates(metrics::StepRecord& record, const metrics::Rates& rates) const {
  record.tokens_per_second = rates.tokens_per_second;
  record.samples_per_second = rates.samples_per_second;
  record.flops_per_second = workload_.flops_per_row * rates.samples_per_second;
  record.mfu = metrics::mfu(workload_.flops_per_row, rates.samples_per_second, workload_.peak_flops);
}

void Report::set_epoch(metrics::StepRecord& record) const {
  const int64_t before = record.step - 1;
  record.step_of_epoch = before;
  if (!workload_.pace) return;
  const Pace& pace = *workload_.pace;
  record.epoch = pace.epochs(before);
  record.step_of_epoch = pace.steps_of_epoch(before);
  record.epoch_samples = std::min(record.step_of_epoch * workload_.sequences_per_step, workload_.sequences_per_epoch);
  record.dataset_size = workload_.sequences_per_epoch;
  record.epoch_percent =
      100.0 * static_cast<double>(record.step_of_epoch) / static_cast<double>(pace.steps_an_epoch());
}

void Report::step(const StepResult& result, int64_t tokens_so_far) {
  const auto now = std::chrono::steady_clock::now();
  const metrics::Rates rates = meter_.step(now, result.tokens, workload_.sequences_per_step);
  const metrics::StepRecord record = record_of(result, tokens_so_far, rates);
  publish(record);
  slow_.step(result.slow);
  if (result.skipped) {
    display_.clear();
    spdlog::warn("step {} is skipped: its gradients overflowed at loss scale {}, which is {} from now on", result.step,
                 *result.loss_scale, result.next_loss_scale);
  }
  if (collectives_) note(collectives_->first_step(result.step));
  const bool is_last = result.step == workload_.total_steps;
  if (line_.is_due(record, settings_.interval, is_last)) print_line(record);
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

void Report::publish(const metrics::StepRecord& record) {
  if (claim_.is_held()) {
    file_.append(record);
    if (tensorboard_) tensorboard_->append(record);
  }
  if (endpoint_) endpoint_->step(record);
  progress_.step = record.step;
  progress_.loss = record.loss;
  progress_.tokens_per_second = record.tokens_per_second;
  if (!poster_) return;
  poster_->step(record.step, record.loss, record.tokens_per_second);
  poster_->metrics_file(file_.error());
}

void Report::print_line(metrics::StepRecord record) {
  set_rates(record, meter_.since_last_line());
  display_.line(line_.format(record) + (record.skipped ? "  (skipped: its gradients overflowed)" : ""));
  if (collectives_) note(collectives_->at_line(record.step, record.memory_bytes));
  if (const std::string news = slow_.at_line(); !news.empty()) {
    display_.clear();
    spdlog::warn(news);
  }
}

/// The line goes to the log, which is stderr.
void Report::note(const std::string& line) {
  if (line.empty()) return;
  display_.clear();
  spdlog::info(line);
}

void Report::saved(int64_t step) {
  progress_.checkpoint_step = step;
  if (poster_) poster_->checkpoint(step);
  if (endpoint_) endpoint_->checkpoint(step);
}

void Report::not_saved(int64_t step, const std::string& why) {
  if (poster_) poster_->checkpoint_failed(fmt::format("step {}: {}", step, why));
}

}  // namespace trainyard::train
