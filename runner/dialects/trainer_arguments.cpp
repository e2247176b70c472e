#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "dialects/amounts.h"
#include "dialects/tables.h"

// transformers' TrainingArguments as of 4.37 (January 2024) to 5.17.
namespace trainyard::dialects {
namespace {

constexpr std::string_view kNoSchedule =
    "linear, cosine, cosine_with_min_lr, polynomial, constant and constant_with_warmup are offered; others can be made "
    "of optimizer.decay, stable_steps and min_lr_ratio (docs/training.md)";
constexpr std::string_view kForPolynomial = "1e-7";  // transformers' lr_end

bool is_schedule(const Document& document, std::string_view word) {
  return is_same_word(word, value_of(document, "lr_scheduler_type", "linear"));
}

/// "constant" has no warm-up there, whatever is said of it.
std::string no_warmup(const Entry& entry, const Document&) {
  return is_same_word("constant", entry.value) ? "0" : "";
}

std::string from_zero(const Entry&, const Document& document, const config::Loaded& run) {
  return !is_schedule(document, "constant") && has_warmup(run) ? "true" : "";
}

/// The floor that a word has by itself; others have it from lr_scheduler_kwargs, or none.
std::string floor_of(const Entry& entry, const Document& document, const config::Loaded& run) {
  if (is_same_word("linear", entry.value) || is_same_word("cosine", entry.value)) return "0";
  if (!is_same_word("polynomial", entry.value) || find(document, "lr_scheduler_kwargs.lr_end")) return "";
  return part_of_peak({std::string(entry.key), std::string(kForPolynomial), entry.origin, true}, run);
}

std::string ratio_of_rate(const Entry& entry, const Document&, const config::Loaded& run) {
  return part_of_peak(entry, run);
}

bool is_zero(const Entry& entry) {
  return number_of(entry) == 0;
}

/// Whether a warm-up is said as a fraction: by warmup_ratio, and below 1 by warmup_steps as in version 5.
bool is_fraction(const Entry& entry) {
  return entry.key == "warmup_ratio" || number_of(entry) < 1;
}

/// None by "constant", and none by a 0 beside which the other flag says one.
bool asks_for_warmup(const Entry& entry, const Document& document) {
  return !is_schedule(document, "constant") && (!is_zero(entry) || !find(document, "warmup_ratio"));
}

std::string trainer_warmup(const Entry& entry, const Document& document, const config::Loaded& run) {
  if (!asks_for_warmup(entry, document)) return "";
  const bool is_steps = !is_fraction(entry) || is_zero(entry);
  return is_steps ? steps_or_fraction(entry, run, "optimizer.warmup_steps") : steps_of_warmup(entry, run);
}

std::string trainer_warmup_ratio(const Entry& entry, const Document& document, const config::Loaded& run) {
  const bool is_asked = asks_for_warmup(entry, document) && is_fraction(entry) && !is_zero(entry);
  return is_asked ? fraction_of_warmup(entry, run) : "";
}

std::string why_no_warmup(const Entry& entry, const Document& document) {
  return is_schedule(document, "constant") && !is_zero(entry) ? "lr_scheduler_type constant has no warm-up" : "";
}

bool saves_by_steps(const Document& document) {
  return is_same_word("steps", value_of(document, "save_strategy", "steps"));
}

std::string why_no_save(const Entry& entry, const Document& document) {
  return saves_by_steps(document) || entry.is_default ? "" : "save_strategy is not steps";
}

std::string why_no_validation(const Entry&, const Document& document) {
  for (const std::string_view key : {"eval_strategy", "evaluation_strategy"}) {
    const std::string strategy = value_of(document, key, "steps");
    if (!is_same_word("steps", strategy)) return fmt::format("{} is {}", key, strategy);
  }
  return "";
}

std::string logging_steps(const Entry& entry, const Document&, const config::Loaded& run) {
  return steps_or_fraction(entry, run, "metrics.interval");
}
std::string eval_steps(const Entry& entry, const Document& document, const config::Loaded& run) {
  if (!why_no_validation(entry, document).empty()) return "";
  return steps_or_fraction(entry, run, "validation.interval");
}
std::string save_steps(const Entry& entry, const Document& document, const config::Loaded& run) {
  if (!saves_by_steps(document)) return "";
  return steps_or_fraction(entry, run, "checkpoint.interval");
}

std::string adam_betas(const Entry&, const Document& document) {
  return fmt::format("[{}, {}]", value_of(document, "adam_beta1", "0.9"), value_of(document, "adam_beta2", "0.999"));
}

/// None, or 0 and less, keeps all.
std::string kept_checkpoints(const Entry& entry, const Document&) {
  const auto number = parse_int(entry.value);
  return is_same_word("none", entry.value) || (number && *number <= 0) ? "1000000" : entry.value;
}

/// Those that say of a run what no other program's flag does. --fp16 and --use_cpu say where it runs and how.
constexpr std::array kTrainerFlags = std::to_array<std::string_view>(
    {"per_device_train_batch_size", "gradient_accumulation_steps", "num_train_epochs", "learning_rate", "max_grad_norm",
     "adam_beta1", "adam_beta2", "adam_epsilon", "warmup_steps", "warmup_ratio", "lr_scheduler_type",
     "gradient_checkpointing", "logging_steps", "eval_steps", "per_device_eval_batch_size", "output_dir", "save_steps",
     "save_total_limit", "optim", "label_smoothing_factor", "dataloader_num_workers", "dataloader_prefetch_factor",
     "dataloader_pin_memory", "dataloader_drop_last", "dataloader_persistent_workers", "train_sampling_strategy",
     "group_by_length", "data_seed", "save_strategy", "eval_strategy", "evaluation_strategy", "logging_strategy",
     "overwrite_output_dir", "load_best_model_at_end", "report_to", "deepspeed"});

/// The parameters that decay are the same: here those of two or more dimensions, there all but biases and norms.
constexpr std::array kTrainerDefaults = std::to_array<Default>({{"per_device_train_batch_size", "8"},
                                                                {"gradient_accumulation_steps", "1"},
                                                                {"num_train_epochs", "3"},
                                                                {"learning_rate", "5e-5"},
                                                                {"lr_scheduler_type", "linear"},
                                                                {"weight_decay", "0"},
                                                                {"adam_beta1", "0.9"},
                                                                {"adam_epsilon", "1e-8"},
                                                                {"max_grad_norm", "1.0"},
                                                                {"save_steps", "500"},
                                                                {"save_total_limit", "none"}});

}  // namespace

std::vector<Row> trainer_arguments() {
  Row schedule = maps("lr_scheduler_type", "optimizer.decay",
                      {{"linear", "linear"},
                       {"cosine", "cosine"},
                       {"cosine_with_min_lr", "cosine"},
                       {"polynomial", "linear"},
                       {"constant", "constant"},
                       {"constant_with_warmup", "constant"}});
  schedule.why = kNoSchedule;
  return {
      takes("per_device_train_batch_size", "training.batch_size"),
      takes("gradient_accumulation_steps", "training.accumulation_steps"),
      takes("num_train_epochs", "training.epochs"),
      takes("learning_rate", "optimizer.lr"),
      takes("max_grad_norm", "training.clip_grad_norm"),
      follows("adam_beta1", "optimizer.betas", adam_betas, "with `adam_beta2`"),
      follows("adam_beta2", "optimizer.betas", adam_betas, "with `adam_beta1`"),
      takes("adam_epsilon", "optimizer.eps"),
      because(derives("warmup_steps", "optimizer.warmup_steps", trainer_warmup,
                      "below 1 a fraction of the steps, rounded up"),
              why_no_warmup),
      derives("warmup_steps", "optimizer.warmup_ratio", trainer_warmup_ratio, kWithoutSteps),
      because(derives("warmup_ratio", "optimizer.warmup_steps", trainer_warmup, "a fraction of the steps, rounded up"),
              why_no_warmup),
      derives("warmup_ratio", "optimizer.warmup_ratio", trainer_warmup_ratio, kWithoutSteps),
      schedule,
      derives("lr_scheduler_type", "optimizer.min_lr_ratio", floor_of,
              "`linear` and `cosine`: 0; `polynomial`: 1e-7, or `lr_end`, divided by the rate"),
      derives("lr_scheduler_type", "optimizer.warmup_from_zero", from_zero, "true, where there is a warm-up"),
      follows("lr_scheduler_type", "optimizer.warmup_steps", no_warmup, "`constant`: 0"),
      derives("lr_scheduler_kwargs.min_lr", "optimizer.min_lr_ratio", ratio_of_rate, "divided by the rate"),
      takes("lr_scheduler_kwargs.min_lr_rate", "optimizer.min_lr_ratio"),
      derives("lr_scheduler_kwargs.lr_end", "optimizer.min_lr_ratio", ratio_of_rate, "divided by the rate"),
      only("lr_scheduler_kwargs.power", {"1", "1.0"}, "a polynomial of another power is not offered"),
      truth("gradient_checkpointing", "activation_checkpointing.mode", {{"true", "full"}, {"false", "none"}}),
      truth("fp16", "parallel.param_dtype", {{"true", "fp16"}, {"false", ""}}),
      derives("logging_steps", "metrics.interval", logging_steps, "below 1 a fraction of the steps, rounded up"),
      takes("logging_dir", "metrics.tensorboard"),
      because(derives("eval_steps", "validation.interval", eval_steps, "below 1 a fraction of the steps, rounded up"),
              why_no_validation),
      takes("per_device_eval_batch_size", "validation.batch_size"),
      takes("output_dir", "checkpoint.dir"),
      because(derives("save_steps", "checkpoint.interval", save_steps, "below 1 a fraction of the steps, rounded up"),
              why_no_save),
      follows("save_total_limit", "checkpoint.keep", kept_checkpoints, "`none`, or 0 and less: all"),
      truth("use_cpu", "device.kind", {{"true", "cpu"}, {"false", ""}}),
  };
}

Variant trainer_variant() {
  return {.name = "transformers' Trainer", .own = kTrainerFlags, .defaults = kTrainerDefaults, .is_for_flags = true};
}

void check_trainer_arguments(const Document& document) {
  const Entry* const type = find(document, "lr_scheduler_type");
  if (!type || !is_same_word("cosine_with_min_lr", type->value)) return;
  if (find(document, "lr_scheduler_kwargs.min_lr") || find(document, "lr_scheduler_kwargs.min_lr_rate")) return;
  throw InputError(fmt::format("{} is {}, which needs --lr_scheduler_kwargs '{{\"min_lr\": …}}' or min_lr_rate",
                               type->origin, type->value));
}

}  // namespace trainyard::dialects
