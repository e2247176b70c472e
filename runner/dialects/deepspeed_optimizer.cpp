#include <fmt/format.h>

#include <initializer_list>

#include "base/error.h"
#include "base/text.h"
#include "dialects/amounts.h"
#include "dialects/tables.h"

// The optimizer and the scheduler of DeepSpeed's json, with the defaults that both have there. As of 0.19.
namespace trainyard::dialects {
namespace {

constexpr std::string_view kSchedulers = "WarmupLR, WarmupDecayLR and WarmupCosineLR are offered";
constexpr std::string_view kAutoRate = "5e-5";  // the Trainer's learning_rate

// The optimizer.

bool has_scheduler(const Document& document, std::string_view type) {
  return is_same_word(type, value_of(document, "scheduler.type", ""));
}

/// The schedulers that say the peak themselves.
bool says_peak(const Document& document) {
  return find(document, "scheduler.params.warmup_max_lr") || has_scheduler(document, "WarmupDecayLR");
}

std::string rate(const Entry& entry, const Document& document) {
  return says_peak(document) ? "" : entry.value;
}
std::string why_no_rate(const Entry& entry, const Document& document) {
  const Entry* const peak = find(document, "scheduler.params.warmup_max_lr");
  if (!says_peak(document) || (peak && peak->value == entry.value)) return "";
  return fmt::format("the scheduler's warmup_max_lr goes before it, which is {}",
                     peak ? config::shown(peak->value) : "0.001");
}

/// Where `params` leaves it out: what FusedAdam has.
std::string fused_rate(const Entry&, const Document& document) {
  return find(document, "optimizer.params.lr") ? "" : "1e-3";
}
std::string fused_betas(const Entry&, const Document& document) {
  return find(document, "optimizer.params.betas") ? "" : "[0.9, 0.999]";
}
std::string fused_eps(const Entry&, const Document& document) {
  return find(document, "optimizer.params.eps") ? "" : "1e-8";
}
std::string fused_decay(const Entry&, const Document& document) {
  if (find(document, "optimizer.params.weight_decay")) return "";
  return truth_of(value_of(document, "optimizer.params.torch_adam", "false")) == true ? "0.01" : "0";
}

/// AdamW is decoupled whatever this says, and Adam unless this says otherwise.
std::string decoupled(const Entry& entry, const Document& document) {
  const bool is_adam = is_same_word("Adam", value_of(document, "optimizer.type", ""));
  if (is_adam && truth_of(entry.value) != true)
    throw InputError(fmt::format("{}: {} is {}: Adam would have L2 regularisation then; AdamW is what is offered",
                                 entry.origin, entry.key, config::shown(entry.value)));
  return "";
}

std::vector<Row> adam() {
  Row type = maps("optimizer.type", "optimizer.decayed_parameters", {{"AdamW", "all"}, {"Adam", "all"}});
  type.why = "AdamW is what is offered, which Adam is in DeepSpeed too";
  type.is_weak = true;
  return {
      type,
      suggests("optimizer.type", "optimizer.lr", fused_rate, "1e-3 where `params` has none; the next three so too"),
      suggests("optimizer.type", "optimizer.betas", fused_betas, "[0.9, 0.999]"),
      suggests("optimizer.type", "optimizer.eps", fused_eps, "1e-8"),
      suggests("optimizer.type", "optimizer.weight_decay", fused_decay, "0, with `torch_adam` 0.01"),
      because(automatic(follows("optimizer.params.lr", "optimizer.lr", rate, "unless the scheduler says the peak"),
                        kAutoRate),
              why_no_rate),
      automatic(takes("optimizer.params.betas", "optimizer.betas"), "[0.9, 0.999]"),
      automatic(takes("optimizer.params.eps", "optimizer.eps"), "1e-8"),
      automatic(takes("optimizer.params.weight_decay", "optimizer.weight_decay"), "0"),
      follows("optimizer.params.adam_w_mode", "", decoupled, "`true`; with AdamW any; else refused"),
      only("optimizer.params.adamw_mode", {"true"}, "AdamW is what is offered; use true"),
      only("optimizer.params.torch_adam", {"true", "false"}, ""),
      only("optimizer.params.bias_correction", {"true"}, "AdamW corrects the bias of its moments; use true"),
      only("optimizer.params.amsgrad", {"false"}, "AMSGrad is not offered; use false"),
      only("optimizer.params.maximize", {"false"}, "the loss is made small; use false"),
      tuning("optimizer.params.fused"),
      tuning("optimizer.params.foreach"),
      tuning("optimizer.params.set_grad_none"),
      only("optimizer.params.fp32_optimizer_states", {"true"}, "use true, or optimizer.state_dtype bf16"),
      refused("optimizer.params.max_grad_norm", "DeepSpeed takes it as gradient_clipping"),
      tuning("optimizer.legacy_fusion"),
  };
}

// The scheduler.

std::string always(const Entry&, const Document&) {
  return "true";
}

std::string floor_of_scheduler(const Entry&, const Document& document) {
  if (has_scheduler(document, "WarmupDecayLR")) return "0";
  const bool is_cosine = has_scheduler(document, "WarmupCosineLR");
  return is_cosine && !find(document, "scheduler.params.cos_min_ratio") ? "0.0001" : "";
}

std::string shape(const Entry&, const Document& document) {
  return find(document, "scheduler.params.warmup_type") ? "" : "log";
}

std::string usual_warmup(const Entry&, const Document& document) {
  return find(document, "scheduler.params.warmup_num_steps") ? "" : "1000";
}

std::string usual_peak(const Entry&, const Document& document) {
  const bool is_said = find(document, "scheduler.params.warmup_max_lr");
  return !is_said && has_scheduler(document, "WarmupDecayLR") ? "0.001" : "";
}

std::string linear_from_zero(const Entry& entry, const Document&) {
  return is_same_word("linear", entry.value) ? "true" : "";
}

std::string part_of_rate(const Entry& entry, const Document&, const config::Loaded& run) {
  return part_of_peak(entry, run);
}

std::string steps_of_scheduler(const Entry& entry, const Document&, const config::Loaded& run) {
  const int64_t steps = run.config.training.steps;
  if (number_of(entry) == static_cast<double>(steps)) return "";
  throw InputError(fmt::format(
      "{}: {} is {}, but {}; write auto, or give --max_steps {}", entry.origin, entry.key, config::shown(entry.value),
      steps == 0 ? "the steps of this run follow from its data" : fmt::format("the run has {} steps", steps),
      config::shown(entry.value)));
}

std::vector<Row> scheduler() {
  Row type = maps("scheduler.type", "optimizer.decay",
                  {{"WarmupLR", "constant"}, {"WarmupDecayLR", "linear"}, {"WarmupCosineLR", "cosine"}});
  type.why = kSchedulers;
  return {
      type,
      follows("scheduler.type", "optimizer.schedule_lags", always,
              "`true`: each rate comes a step later than elsewhere"),
      follows("scheduler.type", "optimizer.min_lr_ratio", floor_of_scheduler,
              "WarmupDecayLR: 0; WarmupCosineLR: 0.0001, or `cos_min_ratio`"),
      follows("scheduler.type", "optimizer.warmup_shape", shape, "`log`, unless `warmup_type` is given"),
      follows("scheduler.type", "optimizer.warmup_steps", usual_warmup, "1000, unless `warmup_num_steps` is given"),
      follows("scheduler.type", "optimizer.lr", usual_peak, "WarmupDecayLR without `warmup_max_lr`: 0.001"),
      maps("scheduler.params.warmup_type", "optimizer.warmup_shape", {{"log", "log"}, {"linear", "linear"}}),
      follows("scheduler.params.warmup_type", "optimizer.warmup_from_zero", linear_from_zero, "`linear`: true"),
      automatic(
          derives("scheduler.params.warmup_min_lr", "optimizer.warmup_min_ratio", part_of_rate, "divided by the rate")),
      automatic(takes("scheduler.params.warmup_max_lr", "optimizer.lr"), kAutoRate),
      automatic(takes("scheduler.params.warmup_num_steps", "optimizer.warmup_steps")),
      automatic(derives("scheduler.params.total_num_steps", "", steps_of_scheduler, "only the number of steps")),
      takes("scheduler.params.cos_min_ratio", "optimizer.min_lr_ratio"),
      only("scheduler.params.warmup_min_ratio", {"0", "0.0"}, "WarmupCosineLR's first step has the rate 0; use 0"),
      only("scheduler.params.last_batch_iteration", {"-1"}, "a resumed run knows its step; use -1"),
  };
}

void refuse_beside(const Document& document, std::string_view type, std::initializer_list<std::string_view> keys) {
  if (!has_scheduler(document, type)) return;
  for (const std::string_view key : keys)
    if (const Entry* const entry = find(document, key))
      throw InputError(fmt::format("{}: {} is none of {}'s ({}); leave it out", entry->origin, entry->key, type,
                                   find(document, "scheduler.type")->origin));
}

}  // namespace

std::vector<Row> deepspeed_optimizer() {
  std::vector<Row> rows = adam();
  const std::vector<Row> more = scheduler();
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

/// Parameters that another scheduler has.
void check_deepspeed_scheduler(const Document& document) {
  refuse_beside(
      document, "WarmupLR",
      {"scheduler.params.total_num_steps", "scheduler.params.cos_min_ratio", "scheduler.params.warmup_min_ratio"});
  refuse_beside(document, "WarmupDecayLR", {"scheduler.params.cos_min_ratio", "scheduler.params.warmup_min_ratio"});
  refuse_beside(document, "WarmupCosineLR", {"scheduler.params.warmup_min_lr", "scheduler.params.warmup_max_lr"});
}

}  // namespace trainyard::dialects
