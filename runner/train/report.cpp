#include "train/report.h"

#include "metrics/mfu.h"

namespace trainyard::train {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Report::Report(const config::Metrics& settings, Workload workload, const Progress& resumed, const World& world)
    : settings_(settings),
      workload_(workload),
      line_(settings.line),
      file_(settings.dir, resumed.step),
      display_(stdout, metrics::ProgressDisplay::mode_of(stdout)),
      meter_(std::chrono::steady_clock::now()) {
  if (!world.progress) return;
  const int64_t checkpoint = resumed.step > 0 ? resumed.step : -1;
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
      .grad_norm = result.grad_norm,
      .lr = result.lr,
      .tokens = tokens_so_far,
      .tokens_per_second = rates.tokens_per_second,
      .samples_per_second = rates.samples_per_second,
      .mfu = metrics::mfu(workload_.flops_per_row, rates.samples_per_second, workload_.peak_flops),
      .memory_bytes = result.memory_bytes,
      .time = seconds_since_1970()};
  file_.append(record);
  if (poster_) poster_->step(result.step, result.loss, rates.tokens_per_second);

  const bool is_last = result.step == workload_.total_steps;
  if (result.step % settings_.interval == 0 || is_last) {
    const metrics::Rates mean = meter_.since_last_line();
    record.tokens_per_second = mean.tokens_per_second;
    record.samples_per_second = mean.samples_per_second;
    record.mfu = metrics::mfu(workload_.flops_per_row, mean.samples_per_second, workload_.peak_flops);
    display_.line(line_.format(record));
  }
  display_.update({result.step, workload_.total_steps, result.loss, rates.tokens_per_second,
                   meter_.remaining(workload_.total_steps - result.step)},
                  now);
  if (is_last) display_.clear();
}

void Report::saved(int64_t step) {
  if (poster_) poster_->checkpoint(step);
}

}  // namespace trainyard::train
