#include "config/details.h"

#include <algorithm>

#include "base/error.h"
#include "base/lowercase.h"
#include "config/check.h"
#include "config/precision.h"
#include "config/strategy.h"
#include "hub/name.h"

namespace trainyard::config {
namespace {

bool scales_by_itself(const Config& config) {
  return config.training.loss_scale == "auto";
}
bool is_float16(const Parallel& parallel) {
  return parallel.param_dtype == Precision::Float16 || parallel.reduce_dtype == Precision::Float16 ||
         parallel.output_dtype == OutputPrecision::Float16;
}
/// Rules that cannot be read are refused elsewhere.
bool uses_float16(const Config& config) {
  if (is_float16(config.parallel)) return true;
  try {
    for (const PrecisionRule& rule : precision_rules(config.parallel.precision))
      if (is_float16(with(config, rule).parallel)) return true;
    return false;
  } catch (const InputError&) {
    return true;
  }
}
/// Some group may get another type than it computes in.
bool mixes_types(const Config& config) {
  const Parallel& parallel = config.parallel;
  const bool hands_on_others =
      parallel.output_dtype == OutputPrecision::BFloat16 || parallel.output_dtype == OutputPrecision::Float16;
  return parallel.param_dtype != Precision::Float32 || hands_on_others || !parallel.precision.empty();
}
bool computes_float8(const Config& config) {
  return config.float8.recipe != Float8Recipe::None;
}

bool trains_adapters(const Config& config) {
  return config.lora.rank > 0;
}

bool is_of_pairs(const Config& config) {
  return !config.data.source_field.empty();
}
bool is_file(const std::string& path) {
  return !path.empty() && path != "random" && path != "embedded";
}
bool is_lines(const std::string& path) {
  return is_file(path) && !lowercase(path).ends_with(".txt");  // as data::has_lines()
}
bool is_mix(const Config& config) {
  return !config.data.mix.empty();
}
bool is_of_conversations(const Config& config) {
  return !config.data.messages_field.empty();
}
bool is_of_no_conversations(const Config& config) {
  return !is_of_conversations(config);
}
bool is_of_no_ids(const Config& config) {
  return config.data.input_ids_field.empty();
}
bool is_of_no_pairs(const Config& config) {
  return !is_of_pairs(config);
}
bool has_lines(const Config& config) {
  return is_lines(config.data.path) || is_mix(config) || is_lines(config.validation.path);
}
bool reads_documents(const Config& config) {
  return !is_of_pairs(config) && (is_file(config.data.path) || is_mix(config) || is_file(config.validation.path));
}
bool reads_lines(const Config& config) {
  return !is_of_pairs(config) && has_lines(config);
}
bool packs_documents(const Config& config) {
  return reads_documents(config) || config.data.path == "embedded";
}
bool reads_pairs(const Config& config) {
  return is_file(config.data.path) || is_file(config.validation.path) || !config.sample.path.empty();
}
/// It is drawn from in an order, and passed over again and again: it is neither a list of batches nor random.
bool has_passes(const Config& config) {
  return is_file(config.data.path) || is_mix(config) || config.data.path == "embedded" || !config.data.images.empty();
}
bool has_no_images(const Config& config) {
  return config.data.images.empty();
}

/// Held-out rows that are made here, and not batches of a file.
bool has_held_out_rows(const Config& config) {
  return !config.validation.path.empty() || !config.validation.images.empty() || config.validation.split > 0;
}
bool validates(const Config& config) {
  return has_held_out_rows(config) || !config.validation.tokens.empty();
}

bool warms_up(const Config& config) {
  return config.optimizer.warmup_steps > 0 || config.optimizer.warmup_ratio > 0 || config.optimizer.schedule_lags;
}
bool decays(const Config& config) {
  return config.optimizer.decay != Decay::Constant;
}

bool shards(const Config& config) {
  return traits_of(config.parallel.strategy).shards && (config.parallel.shard != 1 || config.parallel.context > 1);
}
/// Whether parameters come from other ranks, or from the host.
bool fetches(const Config& config) {
  return shards(config) || config.parallel.offload;
}
bool has_groups(const Config& config) {
  return config.parallel.wrap != Wrap::None;
}
bool fetches_ahead(const Config& config) {
  return config.parallel.prefetch > 0 || config.parallel.forward_prefetch > 0;
}
bool may_use_gpus(const Config& config) {
  return config.device.kind != DeviceChoice::Cpu;
}

bool saves(const Config& config) {
  return config.checkpoint.enabled;
}
bool splits_rows(const Config& config) {
  return config.parallel.context > 1;
}
bool splits_layers(const Config& config) {
  return config.parallel.tensor > 1;
}
bool names_a_checkpoint(const Config& config) {
  return names_checkpoint(config.checkpoint);
}
/// Another run's is read as a whole.
bool loads_all(const Config& config) {
  return !config.checkpoint.initial_load_path.empty() && !config.checkpoint.initial_load_model_only;
}
bool reads_checkpoints(const Config& config) {
  return saves(config) || names_a_checkpoint(config) || !config.checkpoint.initial_load_path.empty();
}

bool profiles(const Config& config) {
  return config.metrics.profile_interval > 0;
}
bool has_an_end(const Config& config) {
  return config.data.path != "random" && !is_mix(config);
}
bool samples(const Config& config) {
  return !config.sample.prompt.empty();
}
bool has_tokenizer(const Config& config) {
  return !config.data.tokenizer.empty();
}

/// Whether such a path is here nobody looks.
bool is_on_hub(const Config& config) {
  return hub::parse_name(config.data.path, hub::RepoKind::Dataset).has_value();
}

constexpr const char* kOnHub = "a name on the hub";
constexpr const char *kPath = "data.path", *kPairs = "data.source_field", *kMessages = "data.messages_field",
                     *kIds = "data.input_ids_field", *kHeldOutPath = "validation.path";
constexpr const char *kGiven = "that is given", *kEmpty = "left empty", *kTrue = "true";
constexpr const char* kAnyHeldOut = "(or tokens, images or split) that is given";
constexpr const char* kWithEnd = "data that has an end";
constexpr const char *kDocuments = "a corpus of documents", *kPasses = "a corpus (or images)";
constexpr const char* kDecaying = "other than constant";
constexpr const char* kWarm = "1 or more (or a warmup_ratio, or schedule_lags)";
constexpr const char* kFloat16 = "fp16 (or another type of a group that is)";
constexpr const char* kSharded = "all but no_shard, with a shard that is not 1 (or a context of 2 or more)";
constexpr const char* kFetched =
    "all but no_shard, with a shard that is not 1 (or a context of 2 or more, or parallel.offload)";
constexpr const char* kWrapped = "transformer_based_wrap or size_based_wrap";
constexpr const char* kOnGpus = "cuda or auto";
constexpr const char* kReads = "true (or a checkpoint that is begun from)";

// A key that another row depends on stands before that row: where the key falls away, the row sees its default.
constexpr Detail kDetails[] = {
    {"model.seed", "model.init_from", kEmpty, [](const Config& config) { return config.model.init_from.empty(); }},
    {"data.tokenizer", "data.images", kEmpty, has_no_images},
    {"data.config", kPath, kOnHub, is_on_hub},
    {"data.split", kPath, kOnHub, is_on_hub},
    {kMessages, kPath, "a file of JSON lines or a table (or data.mix or validation.path)", has_lines},
    {kMessages, kPairs, kEmpty, is_of_no_pairs},
    {kIds, kPath, "a file of JSON lines or a table (or data.mix or validation.path)", has_lines},
    {kIds, kPairs, kEmpty, is_of_no_pairs},
    {kIds, kMessages, kEmpty, is_of_no_conversations},
    {"data.loss_on", kMessages, kGiven, is_of_conversations},
    {"data.chat_template", kMessages, kGiven, is_of_conversations},
    {"data.chat_template_kwargs", kMessages, kGiven, is_of_conversations},
    {"data.field", kPath, "a corpus of JSON lines", reads_lines},
    {"data.field", kMessages, kEmpty, is_of_no_conversations},
    {"data.field", kIds, kEmpty, is_of_no_ids},
    {"data.cache_dir", kPath, kDocuments, reads_documents},
    {"data.append_eos", kPath, kDocuments, packs_documents},
    {"data.append_eos", kMessages, "left empty (a chat template ends what it prints)", is_of_no_conversations},
    {"data.append_eos", kIds, kEmpty, is_of_no_ids},
    {"data.special_tokens", "data.tokenizer", kGiven, has_tokenizer},
    {"data.shuffle", kPath, kPasses, has_passes},
    {"data.seed", kPath, "a corpus, or random (or images)",
     [](const Config& config) { return has_passes(config) || config.data.path == "random"; }},
    {"data.seed", "data.shuffle", kTrue,
     [](const Config& config) { return config.data.shuffle || config.data.path == "random"; }},
    {kPairs, kPath, "a file of JSON lines or a table (or validation.path or sample.path)", reads_pairs},
    {"data.target_field", kPath, "a file of JSON lines or a table (or validation.path or sample.path)", reads_pairs},
    {"data.prefix", kPairs, kGiven, is_of_pairs},
    {"data.max_source_length", kPairs, kGiven, is_of_pairs},
    {"data.max_target_length", kPairs, kGiven, is_of_pairs},
    {"data.truncate", kPairs, kGiven, is_of_pairs},
    {"data.padding", kPairs, kGiven, is_of_pairs},
    {"data.pad_to_multiple_of", kPairs, kGiven, is_of_pairs},
    {"data.max_samples", kPairs, kGiven, is_of_pairs},
    {"data.num_workers", kPath, kPasses, has_passes},
    {"data.prefetch_factor", "data.num_workers", "1 or more",
     [](const Config& config) { return config.data.num_workers > 0; }},
    {"validation.epoch_interval", kPath, kWithEnd, has_an_end},
    {"validation.steps", kHeldOutPath, kAnyHeldOut, validates},
    {"validation.batch_size", kHeldOutPath, "(or images or split) that is given", has_held_out_rows},
    {"training.epochs", "training.steps", "0", [](const Config& config) { return config.training.steps == 0; }},
    {"training.sequence_length", "data.images", kEmpty, has_no_images},
    {"training.sequence_length", kPairs,
     "left empty (lengths of pairs are data.max_source_length and data.max_target_length)", is_of_no_pairs},
    {"training.sync_every_micro_batch", "training.accumulation_steps", "2 or more (or a global_batch_size)",
     [](const Config& config) {
       return config.training.accumulation_steps > 1 || config.training.global_batch_size > 0;
     }},
    {"training.loss_scale_init", "training.loss_scale", "auto", scales_by_itself},
    {"training.loss_scale_growth_factor", "training.loss_scale", "auto", scales_by_itself},
    {"training.loss_scale_backoff_factor", "training.loss_scale", "auto", scales_by_itself},
    {"training.loss_scale_growth_interval", "training.loss_scale", "auto", scales_by_itself},
    {"training.loss_scale_init", "parallel.param_dtype", kFloat16, uses_float16},
    {"training.loss_scale_growth_factor", "parallel.param_dtype", kFloat16, uses_float16},
    {"training.loss_scale_backoff_factor", "parallel.param_dtype", kFloat16, uses_float16},
    {"training.loss_scale_growth_interval", "parallel.param_dtype", kFloat16, uses_float16},
    {"optimizer.warmup_ratio", "optimizer.warmup_steps", "0",
     [](const Config& config) { return config.optimizer.warmup_steps == 0; }},
    {"optimizer.warmup_shape", "optimizer.warmup_steps", kWarm, warms_up},
    {"optimizer.warmup_min_ratio", "optimizer.warmup_steps", kWarm, warms_up},
    {"optimizer.warmup_from_zero", "optimizer.warmup_steps", kWarm, warms_up},
    {"optimizer.warmup_from_zero", "optimizer.warmup_shape", "linear",
     [](const Config& config) { return config.optimizer.warmup_shape == WarmupShape::Linear; }},
    {"optimizer.min_lr_ratio", "optimizer.decay", kDecaying, decays},
    {"optimizer.stable_steps", "optimizer.decay", kDecaying, decays},
    {"optimizer.decayed_parameters", "optimizer.weight_decay", "above 0",
     [](const Config& config) { return config.optimizer.weight_decay > 0; }},
    {"parallel.context_method", "parallel.context", "2 or more", splits_rows},
    {"parallel.context_balance", "parallel.context", "2 or more", splits_rows},
    {"parallel.sequence_parallel", "parallel.tensor", "2 or more", splits_layers},
    {"parallel.loss_parallel", "parallel.tensor", "2 or more", splits_layers},
    {"parallel.async_tensor", "parallel.tensor", "2 or more", splits_layers},
    {"parallel.async_tensor", "parallel.sequence_parallel", kTrue,
     [](const Config& config) { return config.parallel.sequence_parallel; }},
    {"parallel.cast_forward_inputs", "parallel.param_dtype", "bf16 or fp16 (or another output_dtype or precision)",
     mixes_types},
    {"parallel.min_num_params", "parallel.wrap", "size_based_wrap",
     [](const Config& config) { return config.parallel.wrap == Wrap::SizeBased; }},
    {"parallel.transformer_layer_cls_to_wrap", "parallel.wrap", "transformer_based_wrap",
     [](const Config& config) { return config.parallel.wrap == Wrap::TransformerBased; }},
    {"parallel.reshard_after_forward", "parallel.wrap", kWrapped, has_groups},
    {"parallel.offload", "device.kind", kOnGpus, may_use_gpus},
    {"parallel.prefetch", "parallel.strategy", kFetched, fetches},
    {"parallel.prefetch", "parallel.wrap", kWrapped, has_groups},
    {"parallel.forward_prefetch", "parallel.strategy", kFetched, fetches},
    {"parallel.forward_prefetch", "parallel.wrap", kWrapped, has_groups},
    {"parallel.backward_prefetch", "parallel.strategy", kFetched, fetches},
    {"parallel.backward_prefetch", "parallel.wrap", kWrapped, has_groups},
    {"parallel.backward_prefetch", "parallel.prefetch", "1 or more",
     [](const Config& config) {
       return config.parallel.prefetch > 0 || config.parallel.backward_prefetch == BackwardPrefetch::None;
     }},
    {"parallel.unshard_early", "parallel.strategy", kFetched, fetches},
    {"parallel.limit_all_gathers", "parallel.strategy", kSharded, shards},
    {"parallel.limit_all_gathers", "parallel.wrap", kWrapped, has_groups},
    {"parallel.limit_all_gathers", "parallel.prefetch", "(or forward_prefetch) 1 or more", fetches_ahead},
    {"parallel.bucket_cap_mb", "parallel.strategy", "no_shard", [](const Config& config) { return !shards(config); }},
    {"parallel.cpu_ram_efficient_loading", "model.init_from", kGiven,
     [](const Config& config) { return !config.model.init_from.empty(); }},
    {"float8.all_gather", "float8.recipe", "tensorwise",
     [](const Config& config) { return config.float8.recipe == Float8Recipe::Tensorwise; }},
    {"float8.all_gather", "parallel.strategy", kSharded, shards},
    {"float8.filter_fqns", "float8.recipe", "tensorwise, rowwise and rowwise_with_gw_hp", computes_float8},
    {"lora.alpha", "lora.rank", "1 or more", trains_adapters},
    {"lora.dropout", "lora.rank", "1 or more", trains_adapters},
    {"lora.target_modules", "lora.rank", "1 or more", trains_adapters},
    {"lora.init_from", "lora.rank", "1 or more", trains_adapters},
    {"lora.base_dtype", "lora.rank", "1 or more", trains_adapters},
    {"activation_checkpointing.n", "activation_checkpointing.mode", "every_n",
     [](const Config& config) { return config.activation_checkpointing.mode == CheckpointingMode::EveryN; }},
    {"activation_checkpointing.offload", "device.kind", "cuda or auto (or with mode none, where it is as selective)",
     [](const Config& config) {
       return may_use_gpus(config) || config.activation_checkpointing.mode == CheckpointingMode::None;
     }},
    {"checkpoint.name", "checkpoint.enabled", kTrue, saves},
    {"checkpoint.overwrite", "checkpoint.enabled", kTrue, saves},
    {"checkpoint.interval", "checkpoint.enabled", kTrue, saves},
    {"checkpoint.epoch_interval", "checkpoint.enabled", kTrue, saves},
    {"checkpoint.epoch_interval", kPath, kWithEnd, has_an_end},
    {"checkpoint.keep", "checkpoint.enabled", kTrue, saves},
    {"checkpoint.keep", "checkpoint.overwrite", "false",
     [](const Config& config) { return !config.checkpoint.overwrite; }},
    {"checkpoint.async", "checkpoint.enabled", kTrue, saves},
    {"checkpoint.async", "checkpoint.state_dict", "sharded (or with final_state_dict sharded)",
     [](const Config& config) {
       return config.checkpoint.state_dict == StateDict::Sharded ||
              config.checkpoint.final_state_dict == FinalStateDict::Sharded;
     }},
    {"checkpoint.state_dict", "checkpoint.enabled", kTrue, saves},
    {"checkpoint.broadcast_from_rank0", "checkpoint.enabled", "true (or a checkpoint or model.init_from that is read)",
     [](const Config& config) { return reads_checkpoints(config) || !config.model.init_from.empty(); }},
    {"checkpoint.final_state_dict", "checkpoint.enabled", kTrue, saves},
    {"checkpoint.final_model_only", "checkpoint.enabled", kTrue, saves},
    {"checkpoint.exclude", "checkpoint.resume", "auto, extend or a checkpoint",
     [](const Config& config) { return config.checkpoint.resume != "never" || loads_all(config); }},
    {"checkpoint.exclude", "checkpoint.enabled", kReads,
     [](const Config& config) { return saves(config) || names_a_checkpoint(config) || loads_all(config); }},
    {"checkpoint.timeout", "checkpoint.enabled", kReads, reads_checkpoints},
    {"comm.user_buffers", "comm.backend", "nccl, or auto where there are GPUs",
     [](const Config& config) { return config.comm.backend == Backend::Nccl || config.comm.backend == Backend::Auto; }},
    {"comm.user_buffers", "device.kind", kOnGpus, may_use_gpus},
    {"comm.shared_memory", "comm.backend", "gloo or auto",
     [](const Config& config) { return config.comm.backend == Backend::Gloo || config.comm.backend == Backend::Auto; }},
    {"comm.shared_memory", "device.kind", "cpu or auto",
     [](const Config& config) { return config.device.kind != DeviceChoice::Cuda; }},
    {"metrics.validation_line", kHeldOutPath, kAnyHeldOut, validates},
    {"metrics.profile_steps", "metrics.profile_interval", "1 or more", profiles},
    {"metrics.profile_keep", "metrics.profile_interval", "1 or more", profiles},
    {"sample.prompt", "data.tokenizer", kGiven, has_tokenizer},
    {"sample.max_new_tokens", "sample.prompt", kGiven, samples},
    {"sample.temperature", "sample.prompt", kGiven, samples},
    {"sample.top_p", "sample.prompt", kGiven, samples},
    {"sample.top_p", "sample.temperature", "above 0",
     [](const Config& config) { return config.sample.temperature > 0; }},
    {"sample.path", "data.tokenizer", kGiven, has_tokenizer},
    {"sample.count", "sample.path", kGiven, [](const Config& config) { return !config.sample.path.empty(); }},
};

}  // namespace

std::span<const Detail> details() {
  return kDetails;
}

}  // namespace trainyard::config
