#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "dialects/amounts.h"
#include "dialects/tables.h"

// What stands around the steps in transformers' TrainingArguments: the optimizer's name, the data's loader, when there
// is a checkpoint or a validation, where reports go. As of 4.37 (January 2024) to 5.17.
namespace trainyard::dialects {
namespace {

constexpr std::string_view kNoMeasure = "no measure chooses a checkpoint here; save_strategy steps and epoch are known";
constexpr std::string_view kValidations = "validations come by steps or by epochs; use no, steps or epoch";
constexpr std::string_view kFused = "kernels are fused and compiled already";
constexpr std::string_view kNoUpload = "nothing is sent to a hub; trainyard checkpoint export writes a folder to send";
constexpr std::string_view kNoHalfOfValidation = "a validation computes in the types of training; use false";
constexpr std::string_view kUsualLogging = "500";

std::vector<Row> about_the_optimizer() {
  return {
      only("optim", {"adamw_torch", "adamw_torch_fused"},
           "AdamW as PyTorch has it is what is offered; use adamw_torch or adamw_torch_fused"),
      only("optim_args", {""}, "AdamW takes no others; leave it out"),
      only("optim_target_modules", {""}, "it is for GaLore and its like, which are not offered; leave it out"),
      alone(only("adafactor", {"false"}, "AdamW is what is offered; use false"), "true"),
      only("label_smoothing_factor", {"0", "0.0"}, "the loss is plain cross-entropy; use 0"),
      only("neftune_noise_alpha", {"none"}, "no noise is added to embeddings; leave it out"),
      alone(only("average_tokens_across_devices", {"true"},
                 "a step's loss is the mean over the tokens of all ranks; use true"),
            "true"),
      alone(only("auto_find_batch_size", {"false"},
                 "out of memory is an error; trainyard plan finds the batch that fits"),
            "true"),
      no_op("gradient_checkpointing_kwargs", "recomputation is exact, and the tape needs no other way", {"{}"}),
      no_op("torch_empty_cache_steps", "freed memory is kept for the next step", {"none"}),
      alone(no_op("torch_compile", kFused, {"false"}), "true"),
      no_op("torch_compile_backend", kFused),
      compile_mode("torch_compile_mode"),
      alone(no_op("use_liger_kernel", kFused, {"false"}), "true"),
      truth("full_determinism", "training.deterministic", {{"true", "true"}, {"false", ""}}),
  };
}


std::vector<Row> about_the_data() {
  constexpr std::string_view kByLength = "for pairs write --data.padding bucket; packed rows are all of one length";
  Row order = maps("train_sampling_strategy", "data.shuffle", {{"random", "true"}, {"sequential", "false"}});
  order.why = kByLength;
  return {
      takes("dataloader_num_workers", "data.num_workers"),
      takes("dataloader_prefetch_factor", "data.prefetch_factor"),
      alone(no_op("dataloader_pin_memory", "batches are copied over pinned memory where there is a GPU", {"true"}),
            "true"),
      alone(no_op("dataloader_drop_last", "a batch of text is always full: the next pass goes on in it", {"false"}),
            "true"),
      alone(no_op("dataloader_persistent_workers", "the threads live as long as the run", {"true", "false"}), "true"),
      alone(no_op("dataloader_in_order", "the order is the same with any number of workers", {"true"}), "true"),
      no_op("dataloader_multiprocessing_context", "workers are threads"),
      order,
      alone(only("group_by_length", {"false"}, kByLength), "true"),
      no_op("length_column_name", ""),
      takes("data_seed", "data.seed"),
      alone(no_op("remove_unused_columns", "fields that nobody names are passed over", {"true"}), "true"),
      truth("ignore_data_skip", "checkpoint.exclude", {{"true", "data"}, {"false", ""}}),
  };
}

/// --overwrite_output_dir begins anew, but for one who names what to go on from.
std::string begin_anew(const Entry& entry, const Document& document) {
  const bool is_asked = truth_of(entry.value) == true;
  return is_asked && !find(document, "resume_from_checkpoint") ? "never" : "";
}

std::vector<Row> about_checkpoints() {
  Row at_steps = maps("save_strategy", "checkpoint.interval", {{"no", "0"}, {"steps", ""}, {"epoch", "0"}});
  Row at_epochs = maps("save_strategy", "checkpoint.epoch_interval", {{"no", ""}, {"steps", ""}, {"epoch", "1"}});
  at_steps.why = at_epochs.why = kNoMeasure;
  return {
      at_steps,
      at_epochs,
      alone(only("save_only_model", {"false"},
                 "a run could not go on from it; checkpoint.final_model_only is for the last one"),
            "true"),
      alone(only("save_safetensors", {"true"}, "weights are written as safetensors; use true"), "true"),
      alone(no_op("save_on_each_node", "the ranks of all nodes write one folder", {"false"}), "true"),
      alone(no_op("enable_jit_checkpoint", "SIGTERM is answered with a checkpoint in any case", {"true", "false"}),
            "true"),
      alone(follows("overwrite_output_dir", "checkpoint.resume", begin_anew, "`true`: `never`"), "true"),
      alone(only("load_best_model_at_end", {"false"}, kNoMeasure), "true"),
      no_op("metric_for_best_model", kNoMeasure),
      no_op("greater_is_better", kNoMeasure),
      alone(only("push_to_hub", {"false"}, kNoUpload), "true"),
  };
}

/// Without eval_steps the Trainer validates as often as it logs.
std::string as_often_as_logged(const Entry& entry, const Document& document, const config::Loaded& run) {
  if (!is_same_word("steps", entry.value) || find(document, "eval_steps")) return "";
  Entry often = entry;
  often.value = value_of(document, "logging_steps", kUsualLogging);
  return steps_or_fraction(often, run, "validation.interval");
}

std::vector<Row> about_validation() {
  std::vector<Row> rows{
      only("eval_delay", {"0", "0.0"}, "the first validation is that of the first interval; use 0"),
      alone(only("eval_on_start", {"false"}, "trainyard evaluate tells the loss before training; use false"), "true"),
      no_op("eval_accumulation_steps", "sums alone are kept of a validation", {"none"}),
      alone(no_op("prediction_loss_only", "the loss is what a validation tells", {"true"}), "true"),
      alone(only("bf16_full_eval", {"false"}, kNoHalfOfValidation), "true"),
      alone(only("fp16_full_eval", {"false"}, kNoHalfOfValidation), "true"),
      alone(no_op("do_train", "train is the command", {"true"}), "true"),
      alone(no_op("do_eval", "held-out data that is given is always validated on", {"true", "false"}), "true"),
      alone(only("do_predict", {"false"}, "trainyard generate and trainyard evaluate do it; use false"), "true"),
  };
  for (const std::string_view name : {"eval_strategy", "evaluation_strategy"}) {  // the second until 4.46
    Row at_epochs = maps(name, "validation.epoch_interval", {{"no", ""}, {"steps", ""}, {"epoch", "1"}});
    at_epochs.why = kValidations;
    rows.push_back(at_epochs);
    rows.push_back(derives(name, "validation.interval", as_often_as_logged,
                           "`steps` without `eval_steps`: `logging_steps`, or 500"));
  }
  return rows;
}

bool asks_for_tensorboard(const Entry& entry) {
  return is_same_word("tensorboard", entry.value) || is_same_word("all", entry.value);
}

std::string tensorboard(const Entry& entry, const Document& document) {
  if (!asks_for_tensorboard(entry) || find(document, "logging_dir")) return "";
  const Entry* const output = find(document, "output_dir");
  return output ? fmt::format("{}/runs", output->value) : "true";
}

std::string why_no_report(const Entry& entry, const Document&) {
  if (asks_for_tensorboard(entry) || is_same_word("none", entry.value)) return "";
  return "every step is in metrics.jsonl, and TensorBoard and Prometheus can read along";
}

std::vector<Row> about_reports() {
  constexpr std::string_view kInMetrics = "metrics.jsonl has every step, with its tokens and their rate";
  return {
      because(follows("report_to", "metrics.tensorboard", tensorboard,
                      "`tensorboard` and `all`: `logging_dir`, or `runs` below `output_dir`"),
              why_no_report),
      no_op("logging_strategy", "lines come by steps, as logging_steps says", {"steps"}),
      alone(no_op("logging_first_step", kInMetrics, {"false"}), "true"),
      alone(no_op("logging_nan_inf_filter", "a loss that is not finite is an error", {"true", "false"}), "true"),
      alone(no_op("include_tokens_per_second", kInMetrics, {"true", "false"}), "true"),
      alone(no_op("include_num_input_tokens_seen", kInMetrics, {"true", "false", "no", "all", "non_padding"}), "true"),
      no_op("run_name", "metrics.dir is the run's own"),
      alone(no_op("disable_tqdm", "a bar is drawn on a terminal alone"), "true"),
      no_op("log_level", "warnings and errors are always told"),
      no_op("log_level_replica", "rank 0 speaks for all"),
      alone(no_op("log_on_each_node", "rank 0 speaks for all", {"true", "false"}), "true"),
      alone(no_op("skip_memory_metrics", "a plan and each line say what memory is held", {"true"}), "true"),
  };
}

std::string in_seconds(const Entry& entry, const Document&) {
  return entry.value + "s";
}

/// The json is a document of its own.
std::string names_json(const Entry&, const Document&) {
  return "";
}

std::vector<Row> about_the_ranks() {
  constexpr std::string_view kExchange = "which gradients are exchanged follows from the model";
  return {
      follows("ddp_timeout", "comm.timeout", in_seconds, "in seconds"),
      maps("ddp_backend", "comm.backend", {{"nccl", "nccl"}, {"gloo", "gloo"}, {"mpi", "mpi"}}),
      takes("ddp_bucket_cap_mb", "parallel.bucket_cap_mb"),
      alone(no_op("ddp_find_unused_parameters", kExchange, {"false"}), "true"),
      alone(no_op("ddp_static_graph", kExchange, {"false"}), "true"),
      alone(no_op("ddp_broadcast_buffers", "the models here have no buffers that change"), "true"),
      no_op("local_rank", "the launcher says who is who", {"-1"}),
      follows("deepspeed", "", names_json, "its json, or the path of one: [above](#deepspeed)"),
      alone(no_op("use_deepspeed", "", {}), "true"),
  };
}

}  // namespace

std::vector<Row> trainer_surroundings() {
  std::vector<Row> rows;
  for (const auto& part : {about_the_optimizer(), about_the_data(), about_checkpoints(), about_validation(),
                           about_reports(), about_the_ranks()})
    rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

}  // namespace trainyard::dialects
