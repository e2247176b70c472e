#include <array>

#include "dialects/tables.h"
#include "dialects/torchtitan_values.h"

namespace trainyard::dialects {
namespace titan {
namespace {

constexpr std::string_view kEmulated = "a CPU has no units for 8 bits and always emulates them, a GPU never does";
constexpr std::string_view kNotInOneProcess =
    "computing all ranks in one process is not offered; fake_backend is planned without starting anything, and "
    "NGPU=2 without COMM_MODE starts ranks that need no GPU (--device cpu)";

/// The rows as v0.2.2 has them, and in the section of its own that float8 had before.
std::vector<Row> about_float8() {
  constexpr std::string_view kWhere = "where `model.converters` asks for it";
  return {
      follows("model.converters", "float8.recipe", converted,
              "`quantize.linear.float8`: its `recipe_name`, else `tensorwise`; the head stays as it is"),
      follows("quantize.linear.float8.recipe_name", "float8.recipe", if_converted, kWhere),
      follows("quantize.linear.float8.enable_fsdp_float8_all_gather", "float8.all_gather", if_converted, kWhere),
      follows("quantize.linear.float8.filter_fqns", "float8.filter_fqns", filtered_layers,
              "where `model.converters` asks for it, by our names of the layers"),
      no_op("quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp", kScalesOnce, {"true", "false"}),
      no_op("quantize.linear.float8.emulate", kEmulated, {"false"}),
      no_op("quantize.*", kNoSuchQuantizing, {"false", "[]"}),
      follows("float8.recipe_name", "float8.recipe", if_converted, kWhere),
      follows("float8.enable_fsdp_float8_all_gather", "float8.all_gather", if_converted, kWhere),
      follows("float8.filter_fqns", "float8.filter_fqns", filtered_layers,
              "where `model.converters` asks for it, by our names of the layers"),
      no_op("float8.precompute_float8_dynamic_scale_for_fsdp", kScalesOnce, {"true", "false"}),
      no_op("float8.emulate", kEmulated, {"false"}),
      maps("*.enable_float8", "float8.recipe", {{"true", "tensorwise"}, {"false", "none"}}),
      maps("*.enable_float8_linear", "float8.recipe", {{"true", "tensorwise"}, {"false", "none"}}),
  };
}

std::vector<Row> about_the_run() {
  return {
      no_op("job.config_file", ""),
      takes("job.dump_folder", "metrics.dir", "./outputs"),
      no_op("job.description", ""),
      only("job.print_args", {"true", "false"}, ""),
      only("job.print_config", {"true", "false"}, ""),
      no_op("job.save_config_file", "every checkpoint holds the configuration"),
      only("job.custom_config_module", {""}, kPython),
      only("job.use_for_integration_test", {"true", "false"}, ""),
      follows("profiling.enable_profiling", "metrics.profile_interval", profile_interval, "`profiling.profile_freq`"),
      follows("profiling.profile_freq", "metrics.profile_interval", profile_interval, "where profiling is enabled"),
      follows("profiling.profiler_active", "metrics.profile_steps", profile_steps, "where profiling is enabled"),
      no_op("profiling.enable_memory_snapshot", "the log lines say what each step holds", {"false"}),
      no_op("profiling.*", ""),
      takes("metrics.log_freq", "metrics.interval", "10"),
      follows("metrics.enable_tensorboard", "metrics.tensorboard", tensorboard,
              "`metrics.save_tb_folder` below `job.dump_folder`"),
      only("metrics.disable_color_printing", {"true", "false"}, ""),
      no_op("metrics.save_tb_folder", ""),
      only("metrics.save_for_all_ranks", {"false"}, "rank 0 writes the metrics of all; use false"),
      no_op("metrics.enable_wandb", kWandb, {"false"}),
      maps("memory_estimation.enable", "trainyard plan", {{"true", "plan"}, {"false", ""}}),
      maps("memory_estimation.enabled", "trainyard plan", {{"true", "plan"}, {"false", ""}}),
      only("memory_estimation.disable_fake_mode", {"true", "false"}, ""),
      only("experimental.custom_import", {""}, kPython),
      only("experimental.custom_args_module", {""}, kPython),
      takes("debug.seed", "training.seed"),
      takes("debug.seed", "model.seed"),
      takes("debug.deterministic", "training.deterministic"),
      only("debug.deterministic_warn_only", {"false"}, "nothing here is only warned of; use false"),
      only("debug.moe_force_load_balance", {"false"}, "models with experts are not offered; use false"),
  };
}

std::vector<Row> about_the_model() {
  Row optimizer = maps("optimizer.name", "optimizer.decayed_parameters", {{"AdamW", "all"}}, "AdamW");
  optimizer.why = "AdamW is what is offered";
  return {
      only("model.name", {"llama2", "llama3", "llama3.1", "llama3.2", "llama3_2", "qwen3"},
           "the families here are llama3 and qwen3 (and llama2, llama3.2, which torchtitan lacks)"),
      follows("model.flavor", "model.preset", model_of, "with `model.name`; none where weights are loaded",
              "debugmodel"),
      takes("model.hf_assets_path", "data.tokenizer", "./tests/assets/tokenizer"),
      takes("model.tokenizer_path", "data.tokenizer"),
      only("model.print_after_conversion", {"false", "true"}, ""),
      optimizer,
      takes("optimizer.lr", "optimizer.lr", "8e-4"),
      follows("optimizer.beta1", "optimizer.betas", betas, "with `optimizer.beta2`"),
      follows("optimizer.beta2", "optimizer.betas", betas, "with `optimizer.beta1`"),
      takes("optimizer.eps", "optimizer.eps", "1e-8"),
      takes("optimizer.weight_decay", "optimizer.weight_decay", "0.1"),
      only("optimizer.implementation", {"for-loop", "foreach", "fused"}, "for-loop, foreach and fused are known"),
      only("optimizer.early_step_in_backward", {"false"}, "the optimizer steps after backward; use false"),
      derives("lr_scheduler.warmup_steps", "optimizer.warmup_steps", warmup, "at most the steps", "200"),
      derives("lr_scheduler.total_steps", "", total_steps, "only that of `training.steps`"),
      derives("lr_scheduler.decay_ratio", "optimizer.stable_steps", stable_steps,
              "what warm-up and decay leave of the steps"),
      takes("lr_scheduler.decay_type", "optimizer.decay", "linear"),
      takes("lr_scheduler.min_lr_factor", "optimizer.min_lr_ratio", "0.0"),
      takes("lr_scheduler.lr_min", "optimizer.min_lr_ratio"),
      maps("activation_checkpoint.early_stop", "", {{"true", ""}, {"false", ""}}),
      follows("activation_checkpoint.mode", "activation_checkpointing.mode", checkpointing_mode,
              "`selective` is `every_n`, with selective_ac_option `op` our `selective`", "selective"),
      follows("activation_checkpoint.selective_ac_option", "activation_checkpointing.n", every_n,
              "where it is a number", "2"),
      no_op("activation_checkpoint.*", "recomputation is exact, and chooses by the op"),
      no_op("compile.enable", kCompiled, {"false"}),
      compile_mode("compile.mode"),
      no_op("compile.*", ""),
  };
}

std::vector<Row> about_the_data() {
  return {
      follows("training.dataset", "data.path", data_path, "where no `training.dataset_path` is named"),
      takes("training.dataset_path", "data.path"),
      takes("training.local_batch_size", "training.batch_size", "8"),
      follows("training.global_batch_size", "training.global_batch_size", global_batch, "-1: none"),
      takes("training.seq_len", "training.sequence_length", "2048"),
      takes("training.max_norm", "training.clip_grad_norm", "1.0"),
      takes("training.steps", "training.steps", "10000"),
      takes("training.enable_cpu_offload", "parallel.offload"),
      only("training.dtype", {"float32"}, "weights and optimizer state are float32; mixed_precision_param is bfloat16"),
      takes("training.mixed_precision_param", "parallel.param_dtype", "bfloat16"),
      takes("training.mixed_precision_reduce", "parallel.reduce_dtype", "float32"),
      no_op("training.gc_freq", ""),
      only("training.gc_debug", {"true", "false"}, ""),
      takes("training.dataloader.num_workers", "data.num_workers"),
      takes("training.dataloader.prefetch_factor", "data.prefetch_factor"),
      no_op("training.dataloader.*", "a CPU has nothing to copy to, and the threads live as long as the run",
            {"false"}),
      only("validation.enable", {"true", "false"}, ""),
      follows("validation.dataset", "validation.path", validation_path, "where validation is enabled"),
      follows("validation.dataset_path", "validation.path", validation_path, "where validation is enabled"),
      follows("validation.freq", "validation.interval", validation_number, "where validation is enabled", "10"),
      follows("validation.steps", "validation.steps", validation_number, "where validation is enabled; -1: all"),
      follows("validation.local_batch_size", "validation.batch_size", validation_number, "where validation is enabled",
              "8"),
      derives("validation.seq_len", "", validation_length, "only that of training"),
      no_op("validation.dataloader.*", ""),
  };
}

std::vector<Row> about_the_ranks() {
  return {
      follows("parallelism.data_parallel_replicate_degree", "parallel.replicate", degree,
              "with shards of 1: `no_shard`"),
      follows("parallelism.data_parallel_shard_degree", "parallel.shard", degree, "1: `no_shard`"),
      follows("parallelism.fsdp_reshard_after_forward", "parallel.strategy", strategy,
              "`default` and `always`: `full_shard`; `never`: `shard_grad_op`; hybrid where replicas are more than 1",
              "default"),
      takes("parallelism.tensor_parallel_degree", "parallel.tensor"),
      follows("parallelism.enable_sequence_parallel", "parallel.sequence_parallel", with_tensor,
              "with a degree of 1 nothing", "true"),
      follows("parallelism.disable_loss_parallel", "parallel.loss_parallel", with_tensor_turned,
              "the opposite; with a degree of 1 nothing", "false"),
      follows("parallelism.enable_async_tensor_parallel", "parallel.async_tensor", with_tensor,
              "with a degree of 1 nothing"),
      only("parallelism.pipeline_parallel_degree", {"1"}, kNoPipeline),
      only("parallelism.module_fqns_per_model_part", {"[]"}, kNoPipeline),
      no_op("parallelism.pipeline_parallel_*", ""),
      takes("parallelism.context_parallel_degree", "parallel.context"),
      follows("parallelism.context_parallel_load_balancer", "parallel.context_balance", context_balance,
              "`headtail`: `head_tail`; empty: `none`; with a degree of 1 nothing"),
      follows("parallelism.context_parallel_rotate_method", "parallel.context_method", context_method,
              "`allgather`: `all_gather`; `alltoall`: `ring`; with a degree of 1 nothing", "allgather"),
      only("parallelism.expert_parallel_degree", {"1"}, kNoExperts),
      only("parallelism.expert_tensor_parallel_degree", {"1"}, kNoExperts),
      no_op("parallelism.expert_parallel_comm_backend", ""),
      follows("comm.init_timeout_seconds", "rendezvous.timeout", seconds, ""),
      follows("comm.train_timeout_seconds", "comm.timeout", seconds, ""),
      no_op("comm.trace_buf_size", "the last 256 collectives of each rank are kept in any case"),
      no_op("comm.save_traces_folder", "flight records are in metrics.dir"),
      no_op("comm.save_traces_file_prefix", ""),
      Row{.theirs = "comm.mode",
          .ours = "trainyard plan",
          .words = {{"default", ""}, {"", ""}, {"fake_backend", "plan"}},
          .why = kNotInOneProcess},
      only("fault_tolerance.enable", {"false"}, "a lost rank is the operator's affair here; use false"),
      no_op("fault_tolerance.*", "a lost rank is the operator's affair here"),
  };
}

std::vector<Row> about_checkpoints() {
  return {
      takes("checkpoint.enable", "checkpoint.enabled", "false"),
      follows("checkpoint.folder", "checkpoint.dir", checkpoint_folder, "below `job.dump_folder`", "checkpoint"),
      takes("checkpoint.interval", "checkpoint.interval", "500"),
      follows("checkpoint.initial_load_path", "checkpoint.initial_load_path", initial_checkpoint,
              "another run's checkpoint"),
      follows("checkpoint.initial_load_path", "model.init_from", initial_weights, "with `initial_load_in_hf`"),
      follows("checkpoint.initial_load_model_only", "checkpoint.initial_load_model_only", of_initial_checkpoint,
              "where `initial_load_path` is a checkpoint"),
      follows("checkpoint.initial_load_in_hf", "model.init_from", initial_weights,
              "`initial_load_path`, else `model.hf_assets_path`; its config.json is the model"),
      only("checkpoint.initial_load_in_hf_quantized", {"false"}, "quantized weights are not read"),
      takes("checkpoint.last_save_model_only", "checkpoint.final_model_only"),
      takes("checkpoint.last_save_model_weights_only", "checkpoint.final_model_only"),
      maps("checkpoint.last_save_in_hf", "checkpoint.final_state_dict", {{"true", "full"}, {"false", "same"}}),
      no_op("checkpoint.export_dtype", "`trainyard checkpoint export --dtype` converts", {"float32"}),
      maps("checkpoint.async_mode", "checkpoint.async",
           {{"disabled", "false"}, {"async", "true"}, {"async_with_pinned_mem", "true"}}, "disabled"),
      follows("checkpoint.keep_latest_k", "checkpoint.keep", keep, "0: all"),
      derives("checkpoint.load_step", "checkpoint.resume", load_step, "`step-N` in the folder; -1: the latest"),
      follows("checkpoint.exclude_from_loading", "checkpoint.exclude", exclusion, "by our names of the parts"),
      only("checkpoint.enable_first_step_checkpoint", {"false"},
           "not offered; use false, and interval 1 to try a disk"),
      takes("checkpoint.create_seed_checkpoint", "checkpoint.create_seed_checkpoint"),
      only("checkpoint.load_only", {"false"}, "use checkpoint.enable false with --checkpoint.resume PATH"),
      no_op("checkpoint.enable_ft_dataloader_checkpoints", "the position in the data is saved in any case"),
  };
}

std::vector<Row> torchtitan_rows() {
  std::vector<Row> rows;
  for (const auto& part : {about_the_run(), about_the_model(), about_float8(), about_the_data(), about_the_ranks(),
                           about_checkpoints(), older_rows()})
    rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

}  // namespace
}  // namespace titan

const Dialect& torchtitan() {
  static const std::vector<Row> rows = titan::torchtitan_rows();
  static const Dialect dialect{
      .name = "torchtitan",
      .from =
          "Its TOML as of 0.2.2, then what its keys were called from 2024 on, and such as guides have, in whatever "
          "section.",
      .rows = rows,
      .variants = titan::releases()};
  return dialect;
}

}  // namespace trainyard::dialects
