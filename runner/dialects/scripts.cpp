#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.h"
#include "base/text.h"
#include "dialects/amounts.h"
#include "dialects/tables.h"

namespace trainyard::dialects {
namespace {

constexpr std::string_view kNoDropout = "the decoders here have no dropout, as the published ones";

double number(const Document& document, std::string_view key, double otherwise) {
  const Entry* const entry = find(document, key);
  return entry ? number_of(*entry) : otherwise;
}

std::string warmup_steps(const Entry& entry, const Document&, const config::Loaded& run) {
  return steps_of_warmup(entry, run);
}

std::string warmup_ratio(const Entry& entry, const Document&, const config::Loaded& run) {
  return fraction_of_warmup(entry, run);
}

std::string min_lr_ratio(const Entry& entry, const Document&, const config::Loaded& run) {
  return part_of_peak(entry, run);
}

std::string with_warmup(const Entry&, const Document&, const config::Loaded& run) {
  return has_warmup(run) ? "true" : "";
}

std::string decay_iters(const Entry& entry, const Document&, const config::Loaded& run) {
  if (number_of(entry) == static_cast<double>(run.config.training.steps)) return "";
  throw InputError(fmt::format("{} is {}, but the schedule ends with the last step, which is {}; leave it out",
                               entry.origin, config::shown(entry.value), run.config.training.steps));
}

std::string betas_of_flags(const Entry&, const Document& document) {
  return fmt::format("[{}, {}]", number(document, "beta1", 0.9), number(document, "beta2", 0.95));
}

std::string steps(const Entry& entry, const Document&) {
  return entry.value == "-1" ? "" : entry.value;
}

/// The folder that is written to is resumed from in any case. A truth value is the Trainer's.
std::string resume(const Entry& entry, const Document&, const config::Loaded& run) {
  if (const auto truth = truth_of(entry.value)) return *truth ? "auto" : "never";
  return entry.value == run.config.checkpoint.dir ? "auto" : entry.value;
}

// The T5 example saves each epoch in one folder, named by the strategy.
std::string one_for_strategy(const Entry&, const Document&) {
  return "checkpoint_{strategy}";
}
std::string always_true(const Entry&, const Document&) {
  return "true";
}
std::string every_one(const Entry&, const Document&) {
  return "1";
}

/// A share is a number here; the script means the name of a data set's split.
bool is_share(const Entry& entry) {
  const bool is_digit = !entry.value.empty() && std::isdigit(static_cast<unsigned char>(entry.value.front())) != 0;
  return is_digit || entry.value.starts_with('.');
}
std::string share(const Entry& entry, const Document&) {
  return is_share(entry) ? entry.value : "";
}
std::string why_no_share(const Entry& entry, const Document&) {
  return is_share(entry) ? "" : "data here has no splits by name; a number is the share of it that is held out";
}
/// The share that transformers' run_clm.py has.
std::string usual_share(const Entry& entry, const Document&) {
  return parse_int(entry.value).value_or(0) > 0 ? "0.05" : "";
}

/// A kind of model stands for a size of it; other words are models by name.
std::string preset(const Entry& entry, const Document&) {
  constexpr std::array<Word, 4> kKinds{{{"qwen3", "qwen3-0.6b"},
                                        {"llama_v3", "llama3.1-8b"},
                                        {"llama_v2", "llama2-7b"},
                                        {"mistral", "mistral-7b-v0.1"}}};
  const auto* const kind = std::ranges::find(kKinds, entry.value, &Word::theirs);
  return kind == kKinds.end() ? entry.value : std::string(kind->ours);
}

const std::vector<Word> kScriptStrategies{{"FULL_SHARD", "full_shard"},
                                          {"SHARD_GRAD_OP", "shard_grad_op"},
                                          {"NO_SHARD", "no_shard"},
                                          {"HYBRID_SHARD", "hybrid_shard"},
                                          {"HYBRID_SHARD_ZERO2", "hybrid_shard_zero2"},
                                          {"_HYBRID_SHARD_ZERO2", "hybrid_shard_zero2"},
                                          {"full", "full_shard"},
                                          {"hybrid", "hybrid_shard"}};
const std::vector<Word> kCheckpointing{{"true", "full"}, {"false", "none"}};

/// Flags that only the HyperPod example has, and what it takes where others are left out.
constexpr std::array kHyperpodFlags = std::to_array<std::string_view>(
    {"train_batch_size", "val_batch_size", "max_training_steps", "logging_freq", "checkpoint_freq", "validation_freq",
     "max_context_width", "hidden_width", "num_key_value_heads", "model_type", "lr_decay_style"});
constexpr std::array kHyperpodDefaults = std::to_array<Default>({{"train_batch_size", "1"},
                                                                 {"max_steps", "100"},
                                                                 {"bf16", "true"},
                                                                 {"grad_clip", "1.0"},
                                                                 {"weight_decay", "0.2"},
                                                                 {"logging_freq", "10"},
                                                                 {"lr", "1e-4"},
                                                                 {"lr_decay_style", "cosine"},
                                                                 {"min_lr", "1e-5"},
                                                                 {"warmup", "0.0032"},
                                                                 {"checkpoint_freq", "50"}});

/// Its optimizer is AdamW(model.parameters()).
constexpr std::array kHyperpodBrings = std::to_array<Word>({{"optimizer.decayed_parameters", "all"}});

/// awsome-distributed-training's FSDP example, by which HyperPod's guides train; the defaults are the guide's. Its loop
/// and its model.
std::vector<Row> hyperpod() {
  return {
      takes("train_batch_size", "training.batch_size"),
      follows("max_steps", "training.steps", steps, "-1: none, as in the Trainer"),
      takes("max_training_steps", "training.steps"),
      takes("epochs", "training.epochs"),
      takes("seed", "training.seed"),
      takes("seed", "model.seed"),
      no_op("same_seed", ""),
      truth("bf16", "parallel.param_dtype", {{"true", "bf16"}, {"false", ""}}),
      takes("grad_clip", "training.clip_grad_norm"),
      takes("weight_decay", "optimizer.weight_decay"),
      follows("beta1", "optimizer.betas", betas_of_flags, "with `beta2`"),
      follows("beta2", "optimizer.betas", betas_of_flags, "with `beta1`"),
      truth("activation_checkpointing", "activation_checkpointing.mode", kCheckpointing),
      alone(takes("offload_activations", "activation_checkpointing.offload"), "true"),
      no_op("activation_loading_horizon", ""),
      takes("logging_freq", "metrics.interval"),
      takes("tensorboard_dir", "metrics.tensorboard"),
      follows(
          "model_type", "model.preset", preset,
          "`qwen3`, `llama_v3`, `llama_v2` and `mistral` are the smallest of HyperPod's; else a [model](models.md)"),
      takes("max_context_width", "training.sequence_length"),
      takes("vocab_size", "model.vocab_size"),
      takes("hidden_width", "model.hidden_size"),
      takes("intermediate_size", "model.intermediate_size"),
      takes("num_layers", "model.layers"),
      takes("num_heads", "model.heads"),
      takes("num_key_value_heads", "model.kv_heads"),
      no_op("resid_pdrop", kNoDropout, {"0", "0.0"}),
      no_op("embd_pdrop", kNoDropout, {"0", "0.0"}),
      no_op("attn_pdrop", kNoDropout, {"0", "0.0"}),
      no_op("summary_first_pdrop", kNoDropout, {"0", "0.0"}),
      no_op("initializer_range", "the model's config.json says it"),
      no_op("rotary_pct", "the model's config.json says it"),
      no_op("rotary_emb_base", "the model's config.json says it"),
  };
}

/// Its sharding, its schedule, its data and its checkpoints.
std::vector<Row> hyperpod_run() {
  return {
      maps("sharding_strategy", "parallel.strategy", kScriptStrategies),
      alone(takes("cpu_offload", "parallel.offload"), "true"),
      alone(takes("limit_all_gathers", "parallel.limit_all_gathers"), "true"),
      takes("freeze", "training.freeze"),
      takes("lr", "optimizer.lr"),
      maps("lr_decay_style", "optimizer.decay",
           {{"cosine", "clamped_cosine"}, {"linear", "clamped_linear"}, {"constant", "constant"}}),
      derives("lr_decay_style", "optimizer.warmup_from_zero", with_warmup, "true, where there is a warm-up"),
      derives("lr_decay_iters", "", decay_iters, "only the number of steps"),
      derives("min_lr", "optimizer.min_lr_ratio", min_lr_ratio, "divided by `lr`"),
      derives("warmup", "optimizer.warmup_steps", warmup_steps, "a fraction of `max_steps`, rounded up"),
      derives("warmup", "optimizer.warmup_ratio", warmup_ratio, kWithoutSteps),
      only("plateau", {"0", "0.0"}, "write --optimizer.stable_steps N"),
      takes("dataset", "data.path"),
      no_op("dataset_config_name", ""),
      alone(no_op("local_dataset", ""), "true"),
      no_op("train_split", ""),
      because(follows("val_split", "validation.split", share, "a number; the name of a split sets nothing"),
              why_no_share),
      takes("validation_freq", "validation.interval"),
      suggests("validation_freq", "validation.split", usual_share, "0.05, unless held-out data is given"),
      takes("validation_batches", "validation.steps"),
      takes("val_batch_size", "validation.batch_size"),
      takes("tokenizer", "data.tokenizer"),
      derives("resume_from_checkpoint", "checkpoint.resume", resume,
              "`auto` for the folder that is written to and for `true`, `never` for `false`"),
      takes("checkpoint_dir", "checkpoint.dir"),
      takes("checkpoint_freq", "checkpoint.interval"),
  };
}

/// The example keeps what its two ways to save have written apart.
std::string example_folder(const Entry&, const Document& document) {
  const bool is_dcp = is_same_word("true", value_of(document, "dcp_api", "false"));
  return is_dcp ? "checkpoints/dcp_api" : "checkpoints/dtensor_api";
}

/// What example.py of PyTorch's FSDP2 tutorial has in it, where its model is named.
std::vector<Row> fsdp2_example() {
  Row folder = suggests("model", "checkpoint.dir", example_folder,
                        "`tutorial` → `checkpoints/dtensor_api`, with `dcp_api` `checkpoints/dcp_api`");
  folder.when = "tutorial";
  const auto sets = [](std::string_view ours, std::string_view value) {
    return brings("model", "tutorial", ours, value);
  };
  return {
      sets("model.preset", "tutorial"),
      sets("data.path", "random"),
      sets("training.steps", "10"),
      sets("training.batch_size", "32"),
      sets("training.sequence_length", "64"),
      sets("training.clip_grad_norm", "1.0"),
      sets("optimizer.lr", "1e-2"),
      sets("optimizer.decay", "constant"),
      sets("optimizer.betas", "[0.9, 0.999]"),
      sets("optimizer.weight_decay", "0"),
      sets("metrics.interval", "1"),
      sets("checkpoint.resume", "extend"),
      folder,
  };
}

/// PyTorch's FSDP2 tutorial, and the T5 example of FSDP on Kubernetes.
std::vector<Row> tutorials() {
  return {
      follows("model", "model.preset", preset, "as `model_type`; `tutorial` is all of the FSDP2 tutorial's example"),
      truth("explicit_prefetching", "parallel.prefetch", {{"true", "2"}, {"false", "1"}}),
      truth("explicit_prefetching", "parallel.unshard_early", {{"true", "true"}, {"false", "false"}}),
      alone(maps("mixed_precision", "parallel.param_dtype",
                 {{"true", "bf16"}, {"no", "fp32"}, {"bf16", "bf16"}, {"fp16", "fp16"}}),
            "true"),
      truth("dcp_api", "checkpoint.state_dict", {{"true", "full"}, {"false", ""}}),
      truth("dcp_api", "checkpoint.broadcast_from_rank0", {{"true", "true"}, {"false", ""}}),
      truth("full_state_dict", "checkpoint.state_dict", {{"true", "full"}, {"false", "sharded"}}),
      alone(takes("broadcast_from_rank0", "checkpoint.broadcast_from_rank0"), "true"),
      maps("precision", "parallel.param_dtype", {{"fp32", "fp32"}, {"bf16", "bf16"}, {"fp16", "fp16"}}),
      alone(takes("use_offload", "parallel.offload"), "true"),
      truth("use_checkpointing", "activation_checkpointing.mode", kCheckpointing),
      truth("use_prefetch", "parallel.prefetch", {{"true", "1"}, {"false", "0"}}),
      takes("batch_size", "training.batch_size"),
      takes("grad_acc_steps", "training.accumulation_steps"),
      takes("save_path", "checkpoint.dir"),
      follows("save_path", "checkpoint.name", one_for_strategy,
              "`checkpoint_` and the strategy, as `checkpoint_FULL_SHARD`"),
      follows("save_path", "checkpoint.overwrite", always_true, "each epoch replaces the one before"),
      follows("save_path", "checkpoint.epoch_interval", every_one, "after each epoch"),
      takes("num_workers", "data.num_workers"),
      takes("prefetch_factor", "data.prefetch_factor"),
      alone(no_op("pin_memory", "a CPU has nothing to copy to"), "true"),
  };
}

std::vector<Row> script_rows() {
  std::vector<Row> rows = hyperpod();
  for (const auto& part : {hyperpod_run(), tutorials(), fsdp2_example(), trainer_arguments(), trainer_surroundings()})
    rows.insert(rows.end(), part.begin(), part.end());
  for (const auto& part : {fsdp_rows(), deepspeed_plugin_rows()}) rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

}  // namespace

const Dialect& scripts() {
  static const std::vector<Row> rows = script_rows();
  static const std::array variants{
      Variant{.name = "the HyperPod example", .own = kHyperpodFlags, .defaults = kHyperpodDefaults, .brings = kHyperpodBrings},
      trainer_variant(),
  };
  static const Dialect dialect{
      .name = "training scripts",
      .from = "Flags, with - or _ in their names: of the HyperPod example, the tutorials, the Trainer.",
      .rows = rows,
      .check = check_trainer_arguments,
      .variants = variants};
  return dialect;
}

}  // namespace trainyard::dialects
