#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "dialects/amounts.h"
#include "dialects/tables.h"

// DeepSpeed's json as of 0.19 (August 2026), and "auto" in it as transformers' Trainer fills it in: how a model
// is spread over ranks, rows of a step, types. What comes after is in deepspeed_optimizer.cpp, what stands around in
// deepspeed_surroundings.cpp.
namespace trainyard::dialects {
namespace {

constexpr std::string_view kNoNvme = "nothing is kept on NVMe here; use cpu";
constexpr std::string_view kNoQuantization = "values are exchanged in their own type here; use false";

bool is_true(const Document& document, std::string_view key) {
  return truth_of(value_of(document, key, "false")) == true;
}
bool is_false(const Document& document, std::string_view key) {
  return truth_of(value_of(document, key, "")) == false;
}

int64_t count_of(const Entry& entry) {
  const auto count = parse_int(entry.value);
  if (!count)
    throw InputError(
        fmt::format("{}: {} is '{}'; it must be a whole number", entry.origin, entry.key, config::shown(entry.value)));
  return *count;
}

// Sharding.

int64_t shards_together(const Document& document) {
  const Entry* const size = find(document, "zero_optimization.mics_shard_size");
  return size ? count_of(*size) : -1;
}

std::string strategy_of_stage(const Entry& entry, const Document& document) {
  const auto stage = parse_int(entry.value);
  if (!stage || *stage < 0 || *stage > 3)
    throw InputError(
        fmt::format("{}: {} is '{}'; use 0, 1, 2 or 3", entry.origin, entry.key, config::shown(entry.value)));
  if (*stage == 0) return "no_shard";
  if (*stage < 3) return "shard_grad_op";
  return shards_together(document) > 0 ? "hybrid_shard" : "full_shard";
}

bool is_stage_3(const Document& document) {
  return value_of(document, "zero_optimization.stage", "0") == "3";
}

std::string why_not_stage_3(const Entry& entry, const Document& document) {
  return is_stage_3(document) || count_of(entry) <= 1 ? "" : "it is for stage 3";
}

/// hpZ's secondary copy, from which backward gathers; 1 is none.
std::string secondary_ranks(const Entry& entry, const Document& document) {
  return count_of(entry) > 1 && is_stage_3(document) ? entry.value : "";
}

std::string mics_ranks(const Entry& entry, const Document& document) {
  return count_of(entry) > 0 && is_stage_3(document) ? entry.value : "";
}

/// Older json has truth values.
std::string offloads(const Entry& entry, const Document&) {
  return truth_of(entry.value) == true ? "true" : "";
}

Row offload(std::string_view theirs) {
  Row row = maps(theirs, "parallel.offload", {{"none", ""}, {"cpu", "true"}});
  row.why = kNoNvme;
  return automatic(row);
}

std::vector<Row> sharding() {
  return {
      follows("zero_optimization.stage", "parallel.strategy", strategy_of_stage,
              "0: `no_shard`; 1 and 2: `shard_grad_op`, which keeps gradients split too, with the same results; 3: "
              "`full_shard`, with `mics_shard_size` `hybrid_shard`",
              "0"),
      because(follows("zero_optimization.zero_hpz_partition_size", "parallel.reshard_after_forward", secondary_ranks,
                      "with stage 3; 1: nothing"),
              why_not_stage_3),
      because(follows("zero_optimization.mics_shard_size", "parallel.shard", mics_ranks, "with stage 3; -1: nothing"),
              why_not_stage_3),
      offload("zero_optimization.offload_optimizer.device"),
      offload("zero_optimization.offload_param.device"),
      follows("zero_optimization.cpu_offload", "parallel.offload", offloads, "`true`, as of older versions"),
      follows("zero_optimization.cpu_offload_param", "parallel.offload", offloads, "`true`, as of older versions"),
      maps("zero_optimization.stage3_gather_16bit_weights_on_model_save", "checkpoint.final_state_dict",
           {{"true", "full"}, {"false", ""}}),
      maps("zero_optimization.stage3_gather_fp16_weights_on_model_save", "checkpoint.final_state_dict",
           {{"true", "full"}, {"false", ""}}),
      maps("zero_optimization.gather_16bit_weights_on_model_save", "checkpoint.final_state_dict",
           {{"true", "full"}, {"false", ""}}),
  };
}

/// How fast its own exchanges and copies go.
std::vector<Row> sharding_speed() {
  return {
      tuning("zero_optimization.offload_optimizer.pin_memory"),
      tuning("zero_optimization.offload_optimizer.buffer_count"),
      tuning("zero_optimization.offload_optimizer.pipeline_read"),
      tuning("zero_optimization.offload_optimizer.pipeline_write"),
      tuning("zero_optimization.offload_optimizer.pipeline"),
      tuning("zero_optimization.offload_optimizer.fast_init"),
      tuning("zero_optimization.offload_optimizer.ratio"),
      tuning("zero_optimization.offload_optimizer.super_offload"),
      tuning("zero_optimization.offload_optimizer.cpuadam_cores_perc"),
      no_op("zero_optimization.offload_optimizer.nvme_path", "nothing is kept on NVMe", {"none"}),
      tuning("zero_optimization.offload_param.pin_memory"),
      tuning("zero_optimization.offload_param.buffer_count"),
      tuning("zero_optimization.offload_param.buffer_size"),
      tuning("zero_optimization.offload_param.max_in_cpu"),
      no_op("zero_optimization.offload_param.nvme_path", "nothing is kept on NVMe", {"none"}),
      tuning("zero_optimization.contiguous_gradients"),
      tuning("zero_optimization.reduce_scatter"),
      tuning("zero_optimization.reduce_bucket_size"),
      tuning("zero_optimization.use_multi_rank_bucket_allreduce"),
      tuning("zero_optimization.allgather_partitions"),
      tuning("zero_optimization.allgather_bucket_size"),
      tuning("zero_optimization.overlap_comm"),
      tuning("zero_optimization.sub_group_size"),
      tuning("zero_optimization.cpu_offload_use_pin_memory"),
      tuning("zero_optimization.stage3_prefetch_bucket_size"),
      tuning("zero_optimization.stage3_param_persistence_threshold"),
      tuning("zero_optimization.stage3_model_persistence_threshold"),
      tuning("zero_optimization.stage3_max_live_parameters"),
      tuning("zero_optimization.stage3_max_reuse_distance"),
      tuning("zero_optimization.stage3_module_granularity_threshold"),
      tuning("zero_optimization.stage3_use_all_reduce_for_fetch_params"),
      tuning("zero_optimization.stage3_allgather_sequential"),
      tuning("zero_optimization.prefetch_bucket_size"),
      tuning("zero_optimization.param_persistence_threshold"),
      tuning("zero_optimization.model_persistence_threshold"),
      tuning("zero_optimization.max_live_parameters"),
      tuning("zero_optimization.max_reuse_distance"),
      tuning("zero_optimization.module_granularity_threshold"),
      tuning("zero_optimization.use_all_reduce_for_fetch_params"),
      tuning("zero_optimization.allgather_sequential"),
      tuning("zero_optimization.round_robin_gradients"),
      tuning("zero_optimization.mics_hierarchical_params_gather"),
      tuning("zero_optimization.memory_efficient_linear"),
      tuning("zero_optimization.legacy_stage1"),
      tuning("zero_optimization.leaf_module.*"),
  };
}

/// What is done in one way here, or not at all.
std::vector<Row> sharding_ways() {
  return {
      no_op("zero_optimization.ignore_unused_parameters", "which gradients are exchanged follows from the model",
            {"true"}),
      no_op("zero_optimization.load_from_fp32_weights", "weights and optimizer state are float32 in every checkpoint",
            {"true"}),
      no_op("zero_optimization.elastic_checkpoint", "any checkpoint resumes at any number of ranks", {"false"}),
      no_op("zero_optimization.pipeline_loading_checkpoint", "any checkpoint resumes at any number of ranks",
            {"false"}),
      no_op("zero_optimization.override_module_apply", "no Python modules are initialised here", {"true", "false"}),
      no_op("zero_optimization.log_trace_cache_warnings", "there is no such cache", {"false"}),
      no_op("zero_optimization.enable_sanity_checks", "checks are always on", {"false"}),
      no_op("zero_optimization.save_muon_momentum_buffer_in_memory", "it is for Muon", {"false"}),
      only("zero_optimization.zero_quantized_weights", {"false"}, kNoQuantization),
      only("zero_optimization.zero_quantized_nontrainable_weights", {"false"}, kNoQuantization),
      only("zero_optimization.zero_quantized_gradients", {"false"}, kNoQuantization),
      refused("zero_optimization.zeropp_loco_param.*", "gradients are exchanged in their own type here; leave it out"),
      refused("zero_optimization.zenflow.*", "no part of the optimizer's step is put off here; leave it out"),
  };
}

// Rows of a step.

std::string open_rows(const Entry& entry, const Document& document) {
  return entry.value == "auto" || find(document, "train_micro_batch_size_per_gpu") ? "" : "0";
}

std::vector<Row> batches() {
  return {
      automatic(takes("train_batch_size", "training.global_batch_size")),
      suggests("train_batch_size", "training.batch_size", open_rows,
               "0, where `train_micro_batch_size_per_gpu` is left out"),
      automatic(takes("train_micro_batch_size_per_gpu", "training.batch_size"), "8"),
      automatic(takes("gradient_accumulation_steps", "training.accumulation_steps"), "1"),
      automatic(takes("gradient_clipping", "training.clip_grad_norm"), "1.0"),
  };
}

// Types.

/// Both false is float32. One of them says nothing of the other.
std::string precision_of(const Entry& entry, const Document& document) {
  if (truth_of(entry.value) == true) return entry.key.starts_with("fp16") ? "fp16" : "bf16";
  if (truth_of(entry.value) != false)
    throw InputError(
        fmt::format("{}: {} is '{}'; use true, false or auto", entry.origin, entry.key, config::shown(entry.value)));
  const bool is_no_bf16 = is_false(document, "bf16.enabled") || is_false(document, "bfloat16.enabled");
  return is_no_bf16 && is_false(document, "fp16.enabled") ? "fp32" : "";
}

bool scales(const config::Loaded& run) {
  return run.config.parallel.param_dtype == config::Precision::Float16;
}

std::string loss_scale(const Entry& entry, const Document&, const config::Loaded& run) {
  if (!scales(run)) return "";
  return number_of(entry) == 0 ? "auto" : entry.value;
}

std::string first_scale(const Entry& entry, const Document&, const config::Loaded& run) {
  if (!scales(run)) return "";
  const int64_t power = count_of(entry);
  if (power < 0 || power > 99)
    throw InputError(fmt::format("{}: {} is {}; use 0 to 99", entry.origin, entry.key, power));
  return fmt::format("{}", std::pow(2.0, static_cast<double>(power)));
}

std::string scale_window(const Entry& entry, const Document&, const config::Loaded& run) {
  return scales(run) ? entry.value : "";
}

std::string never_set(const Entry&, const Document&) {
  return "";
}

std::string why_no_hysteresis(const Entry& entry, const Document& document) {
  const bool asks = entry.value != "1" && is_true(document, "fp16.enabled");
  return asks ? "the scale falls at the first overflow, so that fewer steps are skipped" : "";
}

Row half_precision(std::string_view theirs) {
  return automatic(follows(theirs, "parallel.param_dtype", precision_of, "`true`; `fp32` where both are `false`"));
}

std::vector<Row> types() {
  constexpr std::string_view kMaster = "weights and gradients of the optimizer are float32 here; use false";
  constexpr std::string_view kNotFinite = "a gradient that is not finite is an error in bfloat16";
  std::vector<Row> rows{
      half_precision("bf16.enabled"),
      half_precision("bfloat16.enabled"),
      half_precision("fp16.enabled"),
      derives("fp16.loss_scale", "training.loss_scale", loss_scale, "0: `auto`; where fp16 is on, as the three below"),
      derives("fp16.initial_scale_power", "training.loss_scale_init", first_scale, "2 to that power"),
      derives("fp16.loss_scale_window", "training.loss_scale_growth_interval", scale_window, ""),
      because(follows("fp16.hysteresis", "", never_set,
                      "the scale falls at the first overflow, so that fewer steps are skipped"),
              why_no_hysteresis),
      only("fp16.consecutive_hysteresis", {"true", "false"}, ""),
      only("fp16.min_loss_scale", {"1", "1.0"}, "no scale falls below 1 here; use 1"),
      no_op("fp16.auto_cast", "token ids are no numbers to cast", {"true", "false"}),
      only("fp16.fp16_master_weights_and_grads", {"false"}, kMaster),
      maps("communication_data_type", "parallel.reduce_dtype", {{"fp32", "fp32"}, {"bf16", "bf16"}, {"fp16", "fp16"}}),
      no_op("seq_parallel_communication_data_type", "exchanges of tokens are in param_dtype"),
      only("data_types.grad_accum_dtype", {"fp32"}, "gradients add up in float32 here; use fp32"),
      only("data_types.param_dtype", {"fp32"}, "weights are kept in float32 here; use fp32 and bf16.enabled"),
      no_op("data_types.buffer_dtype", "the models here have no buffers"),
  };
  for (const auto& [update, check, master, states] :
       {std::array<std::string_view, 4>{"bf16.immediate_grad_update", "bf16.check_grad_overflow",
                                        "bf16.bf16_master_weights_and_grads", "bf16.bf16_optimizer_states"},
        std::array<std::string_view, 4>{"bfloat16.immediate_grad_update", "bfloat16.check_grad_overflow",
                                        "bfloat16.bf16_master_weights_and_grads", "bfloat16.bf16_optimizer_states"}}) {
    rows.push_back(tuning(update));
    rows.push_back(no_op(check, kNotFinite, {"false"}));
    rows.push_back(only(master, {"false"}, kMaster));
    rows.push_back(only(states, {"false"}, "it needs weights in bfloat16; optimizer.state_dtype bf16 does without"));
  }
  return rows;
}

std::vector<Row> all_rows() {
  std::vector<Row> rows = sharding();
  for (const auto& part :
       {sharding_speed(), sharding_ways(), batches(), types(), deepspeed_optimizer(), deepspeed_surroundings()})
    rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

}  // namespace

const Dialect& deepspeed() {
  static const std::vector<Row> rows = all_rows();
  static const Dialect dialect{"DeepSpeed",
                               "The json of `--deepspeed`, `--deepspeed_config` and Accelerate's "
                               "`deepspeed_config_file`; `--config` knows it by "
                               "its keys. `auto` is what a flag of the Trainer says, else another file, else the "
                               "Trainer's default. A value beside "
                               "a flag that says another is refused, all of them at once, as the Trainer does. An "
                               "optimizer or a scheduler that it "
                               "leaves out is the run's.",
                               rows, check_deepspeed_scheduler};
  return dialect;
}

Document read_deepspeed(const config::YamlText& source) {
  return read_document(source);
}

bool is_deepspeed(const config::YamlText& source) {
  constexpr std::array kOwn{"zero_optimization",
                            "train_batch_size",
                            "train_micro_batch_size_per_gpu",
                            "gradient_accumulation_steps",
                            "gradient_clipping",
                            "fp16",
                            "bf16",
                            "steps_per_print",
                            "zero_allow_untested_optimizer"};
  return std::ranges::any_of(kOwn, [&](const char* key) { return has_key(source, key); });
}

// The flags of the Trainer that it passes over where the json says the same.

const Dialect& beside_a_scheduler() {
  constexpr std::string_view kWhy = "DeepSpeed's json has a scheduler, which goes before it, as in the Trainer";
  static const std::vector<Row> rows{no_op("lr_scheduler_type", kWhy), no_op("lr_scheduler_kwargs.*", kWhy)};
  static const Dialect dialect{"the Trainer", "", rows};
  return dialect;
}

// What Accelerate says itself: deepspeed_config of its file, and flags of `accelerate launch`.

namespace {

Row offload_device(std::string_view theirs) {
  Row row = maps(theirs, "parallel.offload", {{"none", ""}, {"cpu", "true"}});
  row.why = kNoNvme;
  return row;
}

const std::vector<Row>& plugin_rows() {
  constexpr std::string_view kDevices = "CUDA_VISIBLE_DEVICES chooses devices, and each machine has its own launcher";
  static const std::vector<Row> rows{
      maps("zero_stage", "parallel.strategy",
           {{"0", "no_shard"}, {"1", "shard_grad_op"}, {"2", "shard_grad_op"}, {"3", "full_shard"}}),
      automatic(takes("gradient_clipping", "training.clip_grad_norm"), "1.0"),
      offload_device("offload_optimizer_device"),
      offload_device("offload_param_device"),
      no_op("offload_optimizer_nvme_path", "nothing is kept on NVMe", {"none"}),
      no_op("offload_param_nvme_path", "nothing is kept on NVMe", {"none"}),
      no_op("zero3_init_flag", "no rank ever holds the whole model", {"true", "false"}),
      maps("zero3_save_16bit_model", "checkpoint.final_state_dict", {{"true", "full"}, {"false", ""}}),
      no_op("deepspeed_hostfile", "each machine has its own launcher, which the others' ranks find by MASTER_ADDR"),
      no_op("deepspeed_multinode_launcher",
            "each machine has its own launcher, which the others' ranks find by MASTER_ADDR", {"standard"}),
      only("deepspeed_exclusion_filter", {""}, kDevices),
      only("deepspeed_inclusion_filter", {""}, kDevices),
      no_op("deepspeed_moe_layer_cls_names", "no model here has experts"),
  };
  return rows;
}

}  // namespace

std::span<const Row> deepspeed_plugin_rows() {
  return plugin_rows();
}

}  // namespace trainyard::dialects
