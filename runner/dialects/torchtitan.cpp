#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "config/value.h"
#include "dialects/tables.h"

namespace trainyard::dialects {
namespace {

constexpr std::string_view kNoPipeline = "pipeline parallelism is not offered; use 1";
constexpr std::string_view kNoExperts = "models with experts are not offered; use 1";
constexpr std::string_view kPython = "Python modules are not loaded here; leave it out";
constexpr std::string_view kFloat8 = "quantize.linear.float8";
constexpr std::string_view kNoSuchQuantizing = "it is for a converter that is not offered";
constexpr std::string_view kScalesOnce = "scales of all weights are agreed on at once in any case";
constexpr std::string_view kEmulated = "a CPU has no units for 8 bits and always emulates them, a GPU never does";
constexpr std::string_view kWandb =
    "no service is contacted; docs/observability.md has the lines that give metrics.jsonl to wandb.log";
constexpr std::string_view kNotInOneProcess =
    "computing all ranks in one process is not offered; fake_backend is planned without starting anything, and "
    "NGPU=2 without COMM_MODE starts ranks that need no GPU (--device cpu)";
constexpr std::string_view kCompiled = "kernels are fused and compiled already";

/// torchtitan's flavors of a family, and our presets for them.
struct Flavor {
  std::string_view name, flavor, preset;
};
constexpr std::array kFlavors = std::to_array<Flavor>({
    {"llama3", "debugmodel", "llama3-debug"},
    {"llama3", "8B", "llama3.1-8b"},
    {"llama3", "70B", "llama3.1-70b"},
    {"llama3", "405B", "llama3.1-405b"},
    {"llama3.1", "8B", "llama3.1-8b"},
    {"llama3.1", "70B", "llama3.1-70b"},
    {"llama3.1", "405B", "llama3.1-405b"},
    {"llama3_2", "1B", "llama3.2-1b"},
    {"llama3_2", "3B", "llama3.2-3b"},
    {"llama3.2", "1B", "llama3.2-1b"},
    {"llama3.2", "3B", "llama3.2-3b"},
    {"llama2", "7B", "llama2-7b"},
    {"llama2", "13B", "llama2-13b"},
    {"llama2", "70B", "llama2-70b"},
    {"qwen3", "debugmodel", "qwen3-debug"},
    {"qwen3", "0.6B", "qwen3-0.6b"},
    {"qwen3", "1.7B", "qwen3-1.7b"},
    {"qwen3", "4B", "qwen3-4b"},
    {"qwen3", "8B", "qwen3-8b"},
    {"qwen3", "14B", "qwen3-14b"},
    {"qwen3", "32B", "qwen3-32b"},
});

bool is_on(const Document& document, std::string_view key, bool otherwise) {
  return truth_of(value_of(document, key, otherwise ? "true" : "false")).value_or(otherwise);
}

bool loads_hugging_face(const Document& document) {
  return is_on(document, "checkpoint.initial_load_in_hf", false);
}

std::string model_of(const Entry& entry, const Document& document) {
  if (loads_hugging_face(document)) return "";
  const std::string name = value_of(document, "model.name", "llama3");
  std::vector<std::string> known;
  for (const Flavor& each : kFlavors) {
    if (each.name == name && is_same_word(each.flavor, entry.value)) return std::string(each.preset);
    known.push_back(fmt::format("{} {}", each.name, each.flavor));
  }
  throw InputError(fmt::format("{}: model.name {} with model.flavor {} is no model here; known are {}", entry.origin,
                               config::shown(name), config::shown(entry.value), fmt::join(known, ", ")));
}

int64_t whole(const Entry& entry) {
  const auto number = parse_int(entry.value);
  constexpr int64_t kMost = 1'000'000'000'000;
  if (!number || *number < -1 || *number > kMost)
    throw InputError(fmt::format("{}: {} is '{}'; it must be a whole number", entry.origin, entry.key,
                                 config::shown(entry.value)));
  return *number;
}

int64_t whole(const Document& document, std::string_view key, int64_t otherwise) {
  const Entry* const entry = find(document, key);
  return entry ? whole(*entry) : otherwise;
}

/// A warm-up longer than the run is the run, as there; where data ends the run, nobody knows yet how long it is.
std::string warmup(const Entry& entry, const Document&, const config::Loaded& run) {
  const int64_t steps = run.config.training.steps, warm = whole(entry);
  return fmt::format("{}", steps > 0 ? std::min(warm, steps) : warm);
}

/// The peak lasts until the last decay_ratio of the steps. torchtitan's stable phase counts a step more and its decay
/// one less far, which comes to the same factors.
std::string stable_steps(const Entry& entry, const Document&, const config::Loaded& run) {
  const auto ratio = config::parse_value({.type = 0.0, .limits = {.min = 0, .max = 1}, .choices = {}}, entry.value,
                                         fmt::format("{}: {}", entry.origin, entry.key));
  const int64_t steps = run.config.training.steps, warm = run.config.optimizer.warmup_steps;
  if (steps == 0)
    throw InputError(fmt::format("{}: {} is a fraction of training.steps, which is 0; give steps, or leave it out",
                                 entry.origin, entry.key));
  const int64_t decay = std::llrint(static_cast<double>(steps) * std::get<double>(ratio));
  return fmt::format("{}", std::max<int64_t>(steps - warm - decay, 0));
}

std::string total_steps(const Entry& entry, const Document&, const config::Loaded& run) {
  if (whole(entry) == run.config.training.steps) return "";
  throw InputError(
      fmt::format("{}: lr_scheduler.total_steps is {}, but the schedule ends with training.steps, which is "
                  "{}; leave it out, or stop early with SIGTERM",
                  entry.origin, config::shown(entry.value), run.config.training.steps));
}

std::string betas(const Entry&, const Document& document) {
  return fmt::format("[{}, {}]", value_of(document, "optimizer.beta1", "0.9"),
                     value_of(document, "optimizer.beta2", "0.95"));
}

/// Below dump_folder, as there.
std::string checkpoint_folder(const Entry& entry, const Document& document) {
  const std::string dump = value_of(document, "job.dump_folder", "./outputs");
  return entry.value.starts_with('/') || dump.empty() ? entry.value : fmt::format("{}/{}", dump, entry.value);
}

std::string load_step(const Entry& entry, const Document&, const config::Loaded& run) {
  return whole(entry) == -1 ? "" : fmt::format("{}/step-{}", run.config.checkpoint.dir, entry.value);
}

/// Another run's checkpoint, or a folder of Hugging Face's, which says what model it is.
std::string initial_checkpoint(const Entry& entry, const Document& document) {
  return loads_hugging_face(document) ? "" : entry.value;
}
std::string of_initial_checkpoint(const Entry& entry, const Document& document) {
  const bool has_one = find(document, "checkpoint.initial_load_path") && !loads_hugging_face(document);
  return has_one ? entry.value : "";
}
std::string initial_weights(const Entry& entry, const Document& document) {
  if (!loads_hugging_face(document)) return "";
  return entry.key == "checkpoint.initial_load_path"
             ? entry.value
             : value_of(document, "checkpoint.initial_load_path",
                        value_of(document, "model.hf_assets_path", "./tests/assets/tokenizer"));
}

std::vector<std::string> listed(std::string_view list) {
  if (list.starts_with('[') && list.ends_with(']')) list = list.substr(1, list.size() - 2);
  std::vector<std::string> words;
  for (const std::string& word : split(list, ','))
    if (!trim(word).empty()) words.emplace_back(trim(word));
  return words;
}

/// Their parts of a checkpoint by ours.
std::string exclusion(const Entry& entry, const Document&) {
  constexpr std::array<Word, 4> kParts{
      {{"optimizer", "optimizer"}, {"dataloader", "data"}, {"lr_scheduler", "progress"}, {"train_state", "progress"}}};
  std::string ours;
  for (const std::string& part : listed(entry.value)) {
    const auto* const known = std::ranges::find(kParts, part, &Word::theirs);
    if (known == kParts.end())
      throw InputError(fmt::format("{}: {} names '{}'; use optimizer, lr_scheduler, dataloader, train_state",
                                   entry.origin, entry.key, config::shown(part)));
    if (ours.find(known->ours) == std::string::npos) ours += (ours.empty() ? "" : ",") + std::string(known->ours);
  }
  return ours;
}

/// 0 keeps all.
std::string keep(const Entry& entry, const Document&) {
  return entry.value == "0" ? "1000000" : entry.value;
}

/// What the name of a data set stands for there, in a checkout of torchtitan.
std::string data_set(const std::string& name) {
  return name == "c4_test" ? "tests/assets/c4_test" : name;
}

/// A path of one's own goes before the name of a data set.
std::string data_path(const Entry& entry, const Document& document) {
  return value_of(document, "training.dataset_path", data_set(entry.value));
}

std::string checkpointing_mode(const Entry& entry, const Document& document) {
  if (entry.value == "none" || entry.value == "full") return entry.value;
  if (entry.value != "selective")
    throw InputError(fmt::format("{}: {} is '{}'; use none, selective or full", entry.origin, entry.key,
                                 config::shown(entry.value)));
  const std::string option = value_of(document, "activation_checkpoint.selective_ac_option", "2");
  return option == "op" ? "selective" : "every_n";
}

std::string every_n(const Entry& entry, const Document& document) {
  const bool counts = value_of(document, "activation_checkpoint.mode", "selective") == "selective";
  return counts && entry.value != "op" ? entry.value : "";
}

/// A degree, in whatever section it stands: guides and early releases have others.
int64_t degree_of(const Document& document, std::string_view name) {
  int64_t degree = 1;
  for (const char* const section : {"parallelism", "experimental", "training"})
    degree = std::max(degree, whole(document, fmt::format("{}.{}", section, name), 1));
  return degree;
}

int64_t context_degree(const Document& document) {
  return degree_of(document, "context_parallel_degree");
}

/// What says something of tensor parallelism counts where there is any.
std::string of_tensor(const Entry& entry, const Document& document, bool is_turned) {
  if (entry.value != "true" && entry.value != "false")
    throw InputError(
        fmt::format("{}: {} is '{}'; use true or false", entry.origin, entry.key, config::shown(entry.value)));
  if (degree_of(document, "tensor_parallel_degree") == 1) return "";
  return (entry.value == "true") != is_turned ? "true" : "false";
}
std::string with_tensor(const Entry& entry, const Document& document) {
  return of_tensor(entry, document, false);
}
std::string with_tensor_turned(const Entry& entry, const Document& document) {
  return of_tensor(entry, document, true);
}

/// Parameters are sharded over the ranks of a context, too.
bool is_ddp(const Document& document) {
  return whole(document, "parallelism.data_parallel_shard_degree", -1) == 1 && context_degree(document) == 1;
}

/// Its default where there is a context at all.
std::string context_method(const Entry& entry, const Document& document) {
  if (entry.value != "allgather" && entry.value != "alltoall")
    throw InputError(fmt::format("{}: {} is '{}'; use allgather or alltoall", entry.origin, entry.key,
                                 config::shown(entry.value)));
  if (context_degree(document) == 1) return "";
  return entry.value == "alltoall" ? "ring" : "all_gather";
}

std::string context_balance(const Entry& entry, const Document& document) {
  if (!entry.value.empty() && entry.value != "headtail")
    throw InputError(fmt::format("{}: {} is '{}'; use headtail, or an empty word for none", entry.origin, entry.key, config::shown(entry.value)));
  if (context_degree(document) == 1) return "";
  return entry.value.empty() ? "none" : "head_tail";
}

/// never keeps the parameters from forward to backward; default and always free them after forward.
std::string strategy(const Entry& entry, const Document& document) {
  const int64_t replicas = whole(document, "parallelism.data_parallel_replicate_degree", 1);
  constexpr std::array<std::string_view, 3> kKnown{"default", "always", "never"};
  if (std::ranges::find(kKnown, entry.value) == kKnown.end())
    throw InputError(fmt::format("{}: {} is '{}'; use default, always or never", entry.origin, entry.key,
                                 config::shown(entry.value)));
  if (is_ddp(document)) return "no_shard";
  const std::string_view zero3 = replicas > 1 ? "hybrid_shard" : "full_shard";
  const std::string_view zero2 = replicas > 1 ? "hybrid_shard_zero2" : "shard_grad_op";
  return std::string(entry.value == "never" ? zero2 : zero3);
}

std::string degree(const Entry& entry, const Document& document) {
  return is_ddp(document) ? "" : entry.value;
}

std::string global_batch(const Entry& entry, const Document&) {
  return entry.value == "-1" ? "0" : entry.value;
}

std::string seconds(const Entry& entry, const Document&) {
  return entry.value + "s";
}

bool profiles(const Document& document) {
  return is_on(document, "profiling.enable_profiling", false);
}

std::string profile_interval(const Entry&, const Document& document) {
  return profiles(document) ? value_of(document, "profiling.profile_freq", "10") : "";
}

std::string profile_steps(const Entry& entry, const Document& document) {
  return profiles(document) ? entry.value : "";
}

std::string tensorboard(const Entry&, const Document& document) {
  if (!is_on(document, "metrics.enable_tensorboard", false)) return "";
  return fmt::format("{}/{}", value_of(document, "job.dump_folder", "./outputs"),
                     value_of(document, "metrics.save_tb_folder", "tb"));
}

bool validates(const Document& document) {
  return is_on(document, "validation.enable", false);
}

/// A path of one's own goes before the name of a data set.
std::string validation_path(const Entry& entry, const Document& document) {
  const bool is_named = entry.key == "validation.dataset" && find(document, "validation.dataset_path");
  if (!validates(document) || is_named) return "";
  return entry.key == "validation.dataset" ? data_set(entry.value) : entry.value;
}

std::string validation_number(const Entry& entry, const Document& document) {
  if (!validates(document)) return "";
  return entry.value == "-1" ? "0" : entry.value;
}

std::string validation_length(const Entry& entry, const Document& document, const config::Loaded& run) {
  const int64_t length = run.config.training.sequence_length;
  if (!validates(document) || entry.value == fmt::format("{}", length)) return "";
  throw InputError(
      fmt::format("{}: validation.seq_len is {}, but training.seq_len is {}; held-out rows are as long as those "
                  "that are trained on: use that, or leave it out",
                  entry.origin, config::shown(entry.value), length));
}

/// Whether model.converters asks for float8, the only one offered.
bool converts(const Document& document) {
  const Entry* const entry = find(document, "model.converters");
  if (!entry) return false;
  const auto converters = listed(entry->value);
  for (const std::string& each : converters)
    if (each != kFloat8 && each != "float8")
      throw InputError(fmt::format("{}: {} names '{}'; {} is what is offered", entry->origin, entry->key,
                                   config::shown(each), kFloat8));
  return !converters.empty();
}

std::string converted(const Entry&, const Document& document) {
  if (!converts(document)) return "";
  const std::string recipe = value_of(document, "quantize.linear.float8.recipe_name", "");
  return recipe.empty() ? value_of(document, "float8.recipe_name", "tensorwise") : recipe;
}

std::string if_converted(const Entry& entry, const Document& document) {
  return converts(document) ? entry.value : "";
}

/// Their names of layers by ours; the head is left as it is anyway, and no model here has a router.
std::string filtered_layers(const Entry& entry, const Document& document) {
  constexpr std::array<Word, 9> kParts{{{"attention", "self_attn"},
                                        {"feed_forward", "mlp"},
                                        {"wq", "q_proj"},
                                        {"wk", "k_proj"},
                                        {"wv", "v_proj"},
                                        {"wo", "o_proj"},
                                        {"w1", "gate_proj"},
                                        {"w2", "down_proj"},
                                        {"w3", "up_proj"}}};
  std::vector<std::string> ours;
  if (!converts(document)) return "";
  for (const std::string& name : listed(entry.value)) {
    if (name == "output" || name == "router.gate") continue;
    if (name == "auto_filter_small_kn")
      throw InputError(
          fmt::format("{}: {} is auto_filter_small_kn, which goes by timings of another library; name the "
                      "layers",
                      entry.origin, entry.key));
    std::vector<std::string> parts = split(name, '.');
    for (std::string& part : parts)
      if (const auto* const known = std::ranges::find(kParts, part, &Word::theirs); known != kParts.end())
        part = known->ours;
    ours.push_back(fmt::format("{}", fmt::join(parts, ".")));
  }
  return fmt::format("{}", fmt::join(ours, ","));
}

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
  return {
      only("model.name", {"llama2", "llama3", "llama3.1", "llama3.2", "llama3_2", "qwen3"},
           "the families here are llama3 and qwen3 (and llama2, llama3.2, which torchtitan lacks)"),
      follows("model.flavor", "model.preset", model_of, "with `model.name`; none where weights are loaded",
              "debugmodel"),
      takes("model.hf_assets_path", "data.tokenizer", "./tests/assets/tokenizer"),
      takes("model.tokenizer_path", "data.tokenizer"),
      only("model.print_after_conversion", {"false", "true"}, ""),
      only("optimizer.name", {"AdamW"}, "AdamW is what is offered"),
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
      takes("checkpoint.last_save_model_only", "checkpoint.final_model_only", "true"),
      takes("checkpoint.last_save_model_weights_only", "checkpoint.final_model_only"),
      maps("checkpoint.last_save_in_hf", "checkpoint.final_state_dict", {{"true", "full"}, {"false", "same"}}),
      no_op("checkpoint.export_dtype", "`trainyard checkpoint export --dtype` converts", {"float32"}),
      maps("checkpoint.async_mode", "checkpoint.async",
           {{"disabled", "false"}, {"async", "true"}, {"async_with_pinned_mem", "true"}}, "disabled"),
      follows("checkpoint.keep_latest_k", "checkpoint.keep", keep, "0: all", "10"),
      derives("checkpoint.load_step", "checkpoint.resume", load_step, "`step-N` in the folder; -1: the latest"),
      follows("checkpoint.exclude_from_loading", "checkpoint.exclude", exclusion, "by our names of the parts"),
      only("checkpoint.enable_first_step_checkpoint", {"false"},
           "not offered; use false, and interval 1 to try a disk"),
      takes("checkpoint.create_seed_checkpoint", "checkpoint.create_seed_checkpoint"),
      only("checkpoint.load_only", {"false"}, "use checkpoint.enable false with --checkpoint.resume PATH"),
      no_op("checkpoint.enable_ft_dataloader_checkpoints", "the position in the data is saved in any case"),
  };
}

/// Names from before v0.2.2, and some that guides use though they never existed; whatever section they stand in.
std::vector<Row> older_names() {
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
      takes("*.data_parallel_replicate_degree", "parallel.replicate"),
      takes("*.data_parallel_shard_degree", "parallel.shard"),
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
  };
}

std::vector<Row> torchtitan_rows() {
  std::vector<Row> rows;
  for (const auto& part : {about_the_run(), about_the_model(), about_float8(), about_the_data(), about_the_ranks(),
                           about_checkpoints(), older_names()})
    rows.insert(rows.end(), part.begin(), part.end());
  return rows;
}

}  // namespace

const Dialect& torchtitan() {
  static const std::vector<Row> rows = torchtitan_rows();
  static const Dialect dialect{
      "torchtitan", "Its TOML as of v0.2.2, then older names of its keys and such as guides have, in whatever section.",
      rows};
  return dialect;
}

}  // namespace trainyard::dialects
