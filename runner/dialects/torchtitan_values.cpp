#include "dialects/torchtitan_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "config/value.h"

namespace trainyard::dialects::titan {

namespace {

constexpr std::string_view kFloat8 = "quantize.linear.float8";

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

}  // namespace

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

namespace {

int64_t whole(const Entry& entry) {
  const auto number = parse_int(entry.value);
  constexpr int64_t kMost = 1'000'000'000'000;
  if (!number || *number < -1 || *number > kMost)
    throw InputError(
        fmt::format("{}: {} is '{}'; it must be a whole number", entry.origin, entry.key, config::shown(entry.value)));
  return *number;
}

}  // namespace

std::string warmup(const Entry& entry, const Document&, const config::Loaded& run) {
  const int64_t steps = run.config.training.steps, warm = whole(entry);
  return fmt::format("{}", steps > 0 ? std::min(warm, steps) : warm);
}

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

std::string checkpoint_folder(const Entry& entry, const Document& document) {
  const std::string dump = value_of(document, "job.dump_folder", "./outputs");
  return entry.value.starts_with('/') || dump.empty() ? entry.value : fmt::format("{}/{}", dump, entry.value);
}

std::string load_step(const Entry& entry, const Document&, const config::Loaded& run) {
  return whole(entry) == -1 ? "" : fmt::format("{}/step-{}", run.config.checkpoint.dir, entry.value);
}

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

namespace {

std::vector<std::string> listed(std::string_view list) {
  if (list.starts_with('[') && list.ends_with(']')) list = list.substr(1, list.size() - 2);
  std::vector<std::string> words;
  for (const std::string& word : split(list, ','))
    if (!trim(word).empty()) words.emplace_back(trim(word));
  return words;
}

}  // namespace

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

std::string keep(const Entry& entry, const Document&) {
  return entry.value == "0" ? "1000000" : entry.value;
}

namespace {

/// What the name of a data set stands for there, in a checkout of torchtitan.
std::string data_set(const std::string& name) {
  if (name == "c4_mini") return "torchtitan/datasets/c4_mini";  // until February 2025
  return name == "c4_test" ? "tests/assets/c4_test" : name;
}

}  // namespace

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

namespace {

/// A degree, in whatever section it stands: guides and early releases have others.
int64_t degree_of(const Document& document, std::string_view name, int64_t otherwise = 1) {
  for (const char* const section : {"parallelism", "experimental", "training"})
    if (const Entry* const entry = find(document, fmt::format("{}.{}", section, name))) return whole(*entry);
  return otherwise;
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

}  // namespace

std::string with_tensor(const Entry& entry, const Document& document) {
  return of_tensor(entry, document, false);
}

std::string with_tensor_turned(const Entry& entry, const Document& document) {
  return of_tensor(entry, document, true);
}

namespace {

/// Parameters are sharded over the ranks of a context, too.
bool is_ddp(const Document& document) {
  return degree_of(document, "data_parallel_shard_degree", -1) == 1 && context_degree(document) == 1;
}

}  // namespace

std::string context_method(const Entry& entry, const Document& document) {
  if (entry.value != "allgather" && entry.value != "alltoall")
    throw InputError(
        fmt::format("{}: {} is '{}'; use allgather or alltoall", entry.origin, entry.key, config::shown(entry.value)));
  if (context_degree(document) == 1) return "";
  return entry.value == "alltoall" ? "ring" : "all_gather";
}

std::string context_balance(const Entry& entry, const Document& document) {
  if (!entry.value.empty() && entry.value != "headtail")
    throw InputError(fmt::format("{}: {} is '{}'; use headtail, or an empty word for none", entry.origin, entry.key,
                                 config::shown(entry.value)));
  if (context_degree(document) == 1) return "";
  return entry.value.empty() ? "none" : "head_tail";
}

std::string strategy(const Entry& entry, const Document& document) {
  const int64_t replicas = degree_of(document, "data_parallel_replicate_degree");
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

namespace {

bool profiles(const Document& document) {
  return is_on(document, "profiling.enable_profiling", false);
}

}  // namespace

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

namespace {

bool validates(const Document& document) {
  return is_on(document, "validation.enable", false) || is_on(document, "validation.enabled", false);
}

}  // namespace

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

namespace {

/// Whether a key of 2024 does: on by itself, or by the kind of its scales.
bool is_switched_on(const Entry& entry) {
  constexpr std::array<std::string_view, 4> kSwitches{".enable_float8_linear", ".enable_float8", ".enable_fp8_linear",
                                                      ".fp8_linear"};
  const auto is_it = [&](std::string_view name) { return entry.key.ends_with(name); };
  return std::ranges::any_of(kSwitches, is_it) && (truth_of(entry.value) == true || entry.value == "dynamic");
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

bool is_float8(const Document& document) {
  return std::ranges::any_of(document, is_switched_on) || converts(document);
}

}  // namespace

std::string converted(const Entry&, const Document& document) {
  if (!converts(document)) return "";
  const std::string recipe = value_of(document, "quantize.linear.float8.recipe_name", "");
  return recipe.empty() ? value_of(document, "float8.recipe_name", "tensorwise") : recipe;
}

std::string if_converted(const Entry& entry, const Document& document) {
  return is_float8(document) ? entry.value : "";
}

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
  if (!is_float8(document)) return "";
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

}  // namespace trainyard::dialects::titan
