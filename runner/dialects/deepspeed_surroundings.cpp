#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dialects/amounts.h"
#include "dialects/tables.h"

// What stands around the training step in DeepSpeed's json: reports, checkpoints, what is not offered here. The version
// is 0.19.
namespace trainyard::dialects {
namespace {

/// A section that says by `enabled` whether it is meant, and is not by default: what else it holds is then nothing's.
void add_feature(std::vector<Row>& rows, std::string_view enabled, std::string_view all, std::string_view why) {
  rows.push_back(only(enabled, {"false"}, why));
  rows.push_back(no_op(all, ""));
}

/// The same of one that asks for what there is in any case.
void add_report(std::vector<Row>& rows, std::string_view enabled, std::string_view all, std::string_view why) {
  rows.push_back(no_op(enabled, why, {"false"}));
  rows.push_back(no_op(all, ""));
}

/// The Trainer and Accelerate fill in what is "auto", and print by themselves.
bool is_filled_in(const Document& document) {
  return std::ranges::find(document, "auto", &Entry::value) != document.end();
}
std::string why_no_lines(const Entry& entry, const Document& document) {
  const bool asks = is_filled_in(document) && entry.value != "auto";
  return asks ? "the Trainer and Accelerate, which fill in what is auto, turn it off; --logging_steps says it" : "";
}

/// It is a number, and infinite where nothing is to be printed.
std::string lines_by(const Entry& entry, const Document& document) {
  if (is_filled_in(document)) return "";
  const double steps = number_of(entry);
  return std::isfinite(steps) && steps >= 1 ? fmt::format("{:.0f}", steps) : "";
}

std::string event_files(const Entry& entry, const Document& document) {
  if (truth_of(entry.value) != true) return "";
  const std::string path = value_of(document, "tensorboard.output_path", "");
  if (path.empty()) return "true";
  const std::string job = value_of(document, "tensorboard.job_name", "DeepSpeedJobName");
  return fmt::format("{}{}{}", path, path.ends_with('/') ? "" : "/", job);
}

std::vector<Row> reports() {
  constexpr std::string_view kInMetrics = "metrics.jsonl has every step, with its times and memory";
  constexpr std::string_view kNoService =
      "no service is contacted; docs/observability.md has the lines that give metrics.jsonl to wandb.log";
  std::vector<Row> rows{
      because(suggests("steps_per_print", "metrics.interval", lines_by,
                       "unless `logging_steps` or another is given, or a value of the json is `auto`"),
              why_no_lines),
      no_op("wall_clock_breakdown", kInMetrics, {"false"}),
      no_op("memory_breakdown", kInMetrics, {"false"}),
      no_op("dump_state", "--print-config prints the whole configuration", {"false"}),
      no_op("log_level", "warnings and errors are always told"),
      follows("tensorboard.enabled", "metrics.tensorboard", event_files, "`true`: `job_name` below `output_path`"),
      no_op("tensorboard.*", ""),
      no_op("timers.*", kInMetrics),
  };
  add_report(rows, "wandb.enabled", "wandb.*", kNoService);
  add_report(rows, "comet.enabled", "comet.*", kNoService);
  add_report(rows, "csv_monitor.enabled", "csv_monitor.*", "metrics.jsonl has every step");
  add_report(rows, "flops_profiler.enabled", "flops_profiler.*", "a line's mfu and tflops, and trainyard plan, say it");
  add_report(rows, "comms_logger.enabled", "comms_logger.*",
             "a trace (metrics.profile_interval) and NCCL_DEBUG say what is exchanged");
  return rows;
}

std::vector<Row> exchanges() {
  return {
      tuning("prescale_gradients"),
      tuning("gradient_predivide_factor"),
      only("gradient_allreduce_op", {"mean"}, "gradients are those of the mean over all rows; use mean"),
      tuning("sparse_gradients"),
      tuning("disable_allgather"),
      tuning("graph_harvesting"),
      tuning("compile.*"),
      only("zero_allow_untested_optimizer", {"true", "false"}, ""),
      tuning("zero_force_ds_cpu_optimizer"),
      only("managed_gradient_accumulation", {"true"}, "accumulation_steps says when a step is taken; use true"),
      no_op("use_data_before_expert_parallelism", "no model here has experts", {"false"}),
      no_op("vocabulary_size", "the model says it"),
      no_op("dataloader_drop_last", "a batch of text is always full: the next pass goes on in it", {"false"}),
      takes("tensor_parallel.autotp_size", "parallel.tensor"),
      no_op("tensor_parallel.*", "how layers are split follows from the model"),
  };
}

/// In DeepSpeed they are for models that call its own recomputation.
std::vector<Row> recomputation() {
  constexpr std::string_view kWhose =
      "activation_checkpointing.mode (or --gradient_checkpointing) says what is recomputed, and .offload where what is "
      "kept for it waits";
  return {
      no_op("activation_checkpointing.partition_activations", kWhose, {"false"}),
      no_op("activation_checkpointing.cpu_checkpointing", kWhose, {"false"}),
      tuning("activation_checkpointing.contiguous_memory_optimization"),
      no_op("activation_checkpointing.number_checkpoints", kWhose, {"none"}),
      tuning("activation_checkpointing.synchronize_checkpoint_boundary"),
      no_op("activation_checkpointing.profile", "a trace shows each part of a step (metrics.profile_interval)",
            {"false"}),
  };
}

std::vector<Row> checkpoints() {
  return {
      no_op("checkpoint.tag_validation", "all ranks agree on the step that they save", {"warn", "ignore", "fail"}),
      no_op("checkpoint.load_universal", "any checkpoint resumes at any number of ranks", {"false"}),
      no_op("checkpoint.use_node_local_storage", "the ranks of all nodes write one folder", {"false"}),
      tuning("checkpoint.parallel_write.*"),
      no_op("aio.*", "nothing is kept on NVMe"),
  };
}

std::vector<Row> others() {
  std::vector<Row> rows{
      refused("sparse_attention.*", "attention is dense here; leave it out"),
      refused("compression_training.*", "models are trained as they are here; leave it out"),
      refused("pipeline.*", "trainyard train has no stages of a pipeline; use zero_optimization or tensor_parallel"),
      refused("expert_parallel.*", "no model here has experts; leave it out"),
      refused("weight_quantization.*", "weights are not quantized here; float8.recipe computes in 8 bits"),
      refused("quantize_training.*", "weights are not quantized here; float8.recipe computes in 8 bits"),
      no_op("_*", ""),
  };
  add_feature(rows, "fp8.enabled", "fp8.*", "training in 8 bits is float8.recipe here; use bf16 with it");
  add_feature(rows, "amp.enabled", "amp.*", "Apex is not offered; use bf16 or fp16");
  add_feature(rows, "torch_autocast.enabled", "torch_autocast.*", "types are those of bf16 and fp16 here; use false");
  add_feature(rows, "curriculum_learning.enabled", "curriculum_learning.*",
              "rows have the length of training.sequence_length throughout; use false");
  add_feature(rows, "data_efficiency.enabled", "data_efficiency.*",
              "rows are drawn in a random order, and every layer sees all tokens; use false");
  add_feature(rows, "autotuning.enabled", "autotuning.*",
              "trainyard plan --suggest finds a layout that fits; use false");
  add_feature(rows, "elasticity.enabled", "elasticity.*",
              "trainyard launch --nnodes min:max is elastic, with the batch as it is given; use false");
  add_feature(rows, "progressive_layer_drop.enabled", "progressive_layer_drop.*",
              "every layer is computed in every step; use false");
  add_feature(rows, "eigenvalue.enabled", "eigenvalue.*", "it is for quantization, which is not offered; use false");
  add_feature(rows, "hybrid_engine.enabled", "hybrid_engine.*", "it is for RLHF, which is not offered; use false");
  add_feature(rows, "nebula.enabled", "nebula.*", "checkpoints are written by checkpoint.async; use false");
  add_feature(rows, "datastates.enabled", "datastates.*", "checkpoints are written by checkpoint.async; use false");
  return rows;
}

}  // namespace

std::vector<Row> deepspeed_surroundings() {
  std::vector<Row> rows;
  for (const auto& part : {reports(), exchanges(), recomputation(), checkpoints(), others()})
    rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

}  // namespace trainyard::dialects
