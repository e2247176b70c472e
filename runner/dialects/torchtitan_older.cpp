#include <array>

#include "dialects/tables.h"
#include "dialects/torchtitan_values.h"

// What torchtitan's releases and its main branch wrote from 2024 on, and 0.2.2 no longer has. Its first release that
// reads a configuration is 0.1.0 of June 2025.
namespace trainyard::dialects::titan {
namespace {

constexpr std::string_view kBySteps = "checkpoints go by steps here; use steps, and an interval in steps";
constexpr std::string_view kDynamic = "scales are dynamic; use dynamic";

/// Names that are known in whatever section they stand, some that guides use though they never existed.
std::vector<Row> in_any_section() {
  return {
      takes("*.batch_size", "training.batch_size"),
      takes("*.micro_batch_size", "training.batch_size"),
      takes("*.max_steps", "training.steps"),
      takes("*.sequence_length", "training.sequence_length"),
      derives("*.warmup_steps", "optimizer.warmup_steps", warmup, "at most the steps"),
      takes("*.tokenizer_path", "data.tokenizer"),
      takes("*.enable_checkpoint", "checkpoint.enabled"),
      takes("*.checkpoint_interval", "checkpoint.interval"),
      takes("*.checkpoint_folder", "checkpoint.dir"),
      takes("*.checkpoint_dir", "checkpoint.dir"),
      takes("*.resume_from_checkpoint", "checkpoint.resume"),
      takes("*.async_save", "checkpoint.async"),
      takes("*.data_parallel_degree", "parallel.shard"),
      follows("*.data_parallel_replicate_degree", "parallel.replicate", degree, "with shards of 1: `no_shard`"),
      follows("*.data_parallel_shard_degree", "parallel.shard", degree, "1: `no_shard`"),
      maps("*.async_mode", "checkpoint.async",
           {{"disabled", "false"}, {"async", "true"}, {"async_with_pinned_mem", "true"}}),
      takes("*.tensor_parallel_degree", "parallel.tensor"),
      follows("*.enable_async_tensor_parallel", "parallel.async_tensor", with_tensor, "with a degree of 1 nothing"),
      only("*.pipeline_parallel_degree", {"1"}, kNoPipeline),
      takes("*.context_parallel_degree", "parallel.context"),
      only("*.norm_type", {"rmsnorm", "fused_rmsnorm", "compiled_rmsnorm"}, "models here have RMSNorm"),
      maps("*.activation_checkpoint", "activation_checkpointing.mode",
           {{"none", "none"}, {"full", "full"}, {"selective", "selective"}}),
      no_op("*.compile", kCompiled, {"false"}),
      compile_mode("*.compile_mode"),
      no_op("*.enable_wandb", kWandb, {"false"}),
      no_op("*.wandb_project", kWandb),
      no_op("*.wandb_entity", kWandb),
      takes("*.seed", "training.seed"),
      takes("*.seed", "model.seed"),
      takes("*.deterministic", "training.deterministic"),
      no_op("*.enable_compiled_autograd", kCompiled, {"false"}),
      no_op("*.precompute_float8_dynamic_scale_for_fsdp", kScalesOnce, {"true", "false"}),
      maps("*.enable_fp8_linear", "float8.recipe", {{"true", "tensorwise"}, {"false", "none"}}),
  };
}

std::vector<Row> of_the_run() {
  return {
      only("metrics.enable_color_printing", {"true", "false"}, ""),
      only("metrics.rank_0_only", {"true"}, "rank 0 writes the metrics of all; use true"),
      only("metrics.disable_logging_from_checkpoint", {"true", "false"}, ""),
      no_op("job.save_config_folder", "every checkpoint holds the configuration"),
      only("experimental.custom_model_path", {""}, kPython),
      only("optimizer.fused", {"true", "false"}, ""),
      only("model.attn_mask_type", {"causal"}, "a token sees all before it in its row; use causal"),
      no_op("model.use_flex_attn", "attention chooses its kernels by itself", {"false"}),
      only("validation.enabled", {"true", "false"}, ""),
      only("training.debug_moe_force_load_balance", {"false"}, "models with experts are not offered; use false"),
  };
}

std::vector<Row> of_the_ranks() {
  return {
      maps("training.data_parallel_type", "parallel.strategy", {{"fsdp", ""}, {"ddp", "no_shard"}}),
      takes("training.sequence_parallel_degree", "parallel.tensor"),
      follows("training.enable_loss_parallel", "parallel.loss_parallel", with_tensor, "with a degree of 1 nothing"),
      follows("training.disable_loss_parallel", "parallel.loss_parallel", with_tensor_turned,
              "the opposite; with a degree of 1 nothing"),
      follows("training.fsdp_reshard_after_forward", "parallel.strategy", strategy,
              "as `parallelism.fsdp_reshard_after_forward`"),
      follows("experimental.context_parallel_rotate_method", "parallel.context_method", context_method,
              "as `parallelism.context_parallel_rotate_method`"),
      no_op("experimental.pipeline_parallel_*", ""),
  };
}

std::vector<Row> of_float8() {
  return {
      maps("training.fp8_linear", "float8.recipe",
           {{"", ""}, {"false", "none"}, {"true", "tensorwise"}, {"dynamic", "tensorwise"}}),
      follows("training.enable_fsdp_float8_all_gather", "float8.all_gather", if_converted, "where float8 is asked for"),
      follows("training.enable_fsdp_fp8_all_gather", "float8.all_gather", if_converted, "where float8 is asked for"),
      only("training.float8_scaling_type_input", {"dynamic"}, kDynamic),
      only("training.float8_scaling_type_weight", {"dynamic"}, kDynamic),
      only("training.float8_scaling_type_grad_output", {"dynamic"}, kDynamic),
      only("float8.scaling_type_input", {"dynamic"}, kDynamic),
      only("float8.scaling_type_weight", {"dynamic"}, kDynamic),
      only("float8.scaling_type_grad_output", {"dynamic"}, kDynamic),
      only("float8.force_recompute_fp8_weight_in_bwd", {"true", "false"}, ""),
      only("float8.moe_fqns_prototype", {"[]"}, kNoExperts),
      no_op("mx.*", kNoSuchQuantizing, {"true", "false", "[]"}),
  };
}

std::vector<Row> of_checkpoints() {
  return {
      only("checkpoint.interval_type", {"steps"}, kBySteps),
      only("training.checkpoint_interval_type", {"steps"}, kBySteps),
      takes("checkpoint.model_weights_only", "checkpoint.final_model_only"),
      follows("checkpoint.initial_load_model_weights_only", "checkpoint.initial_load_model_only", of_initial_checkpoint,
              "where `initial_load_path` is a checkpoint"),
      maps("checkpoint.last_save_in_safetensors_format", "checkpoint.final_state_dict",
           {{"true", "full"}, {"false", "same"}}),
  };
}

constexpr std::array kOf2024 = std::to_array<std::string_view>({
    "metrics.enable_color_printing",
    "metrics.rank_0_only",
    "optimizer.fused",
    "checkpoint.interval_type",
    "checkpoint.model_weights_only",
    "training.fp8_linear",
    "training.data_parallel_degree",
    "training.data_parallel_type",
    "training.data_parallel_replicate_degree",
    "training.data_parallel_shard_degree",
    "training.tensor_parallel_degree",
    "training.warmup_steps",
    "training.enable_loss_parallel",
    "training.disable_loss_parallel",
    "training.fsdp_reshard_after_forward",
    "experimental.context_parallel_degree",
    "experimental.pipeline_parallel_degree",
    "experimental.enable_async_tensor_parallel",
    "float8.enable_float8_linear",
    "float8.scaling_type_input",
    "float8.scaling_type_weight",
    "float8.scaling_type_grad_output",
});
constexpr std::array kOf010 = std::to_array<std::string_view>({
    "checkpoint.initial_load_model_weights_only",
    "checkpoint.last_save_model_weights_only",
    "fault_tolerance.sync_steps",
    "fault_tolerance.should_quantize",
    "float8.emulate",
    "lr_scheduler.lr_min",
    "mx.recipe_name",
    "mx.use_fp8_dim1_cast_triton_kernel",
    "parallelism.pipeline_parallel_split_points",
});
constexpr std::array kOf022 = std::to_array<std::string_view>({
    "checkpoint.enable",
    "checkpoint.initial_load_in_hf",
    "checkpoint.initial_load_model_only",
    "checkpoint.last_save_in_hf",
    "checkpoint.last_save_model_only",
    "checkpoint.load_only",
    "comm.mode",
    "compile.enable",
    "debug.deterministic",
    "debug.seed",
    "job.print_config",
    "lr_scheduler.min_lr_factor",
    "lr_scheduler.total_steps",
    "memory_estimation.enable",
    "model.hf_assets_path",
    "parallelism.context_parallel_load_balancer",
    "parallelism.expert_parallel_degree",
    "training.dtype",
    "validation.enable",
});

// What they delete: checkpoints before the newest, and the optimizer in the last one.
constexpr std::array kKeepsAll =
    std::to_array<Default>({{"checkpoint.keep_latest_k", "0"}, {"checkpoint.last_save_model_only", "false"}});
constexpr std::array kKeepsTen =
    std::to_array<Default>({{"checkpoint.keep_latest_k", "10"}, {"checkpoint.last_save_model_only", "false"}});
constexpr std::array kKeepsTenAndDrops =
    std::to_array<Default>({{"checkpoint.keep_latest_k", "10"}, {"checkpoint.last_save_model_only", "true"}});

}  // namespace

std::vector<Row> older_rows() {
  std::vector<Row> rows = in_any_section();
  for (const auto& part : {of_the_run(), of_the_ranks(), of_float8(), of_checkpoints()})
    rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

std::span<const Variant> releases() {
  static const std::array all{
      Variant{.name = "torchtitan of 2024", .own = kOf2024, .defaults = kKeepsAll},
      Variant{.name = "torchtitan 0.1.0", .own = kOf010, .defaults = kKeepsTen},
      Variant{.name = "torchtitan 0.2.2", .own = kOf022, .defaults = kKeepsTenAndDrops},
      Variant{.name = "torchtitan 0.2.2, the newest that has a TOML",
              .own = {},
              .defaults = kKeepsAll,
              .meaning = "no key decides the release, so what is left out is as there, but nothing is deleted"},
  };
  return all;
}

}  // namespace trainyard::dialects::titan
