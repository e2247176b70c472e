#include "config/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/details.h"
#include "config/mix.h"
#include "config/precision.h"
#include "config/schema.h"
#include "config/strategy.h"
#include "metrics/line.h"

namespace trainyard::config {
namespace {

std::string is(const Loaded& loaded, const std::string& key) {
  return loaded.statement(key);
}

// Keys of which one is given.
constexpr std::array kModel{"model.preset", "model.config", "model.init_from"};
constexpr std::array kData{"data.path", "data.mix", "data.tokens", "data.images"};
constexpr std::array kHeldOut{"validation.path", "validation.tokens", "validation.images", "validation.split"};

/// Their defaults are none.
std::vector<std::string> given(const Loaded& loaded, std::span<const char* const> keys) {
  std::vector<std::string> found;
  for (const char* const key : keys)
    if (find_key(key)->get(loaded.config) != find_key(key)->get(Config{})) found.emplace_back(key);
  return found;
}

/// Exactly one of `keys`: two are an error that shows both places.
void check_one_of(const Loaded& loaded, std::span<const char* const> keys, std::string_view if_none) {
  const auto found = given(loaded, keys);
  if (found.empty()) throw InputError(std::string(if_none));
  if (found.size() < 2) return;
  throw InputError(fmt::format("{} and {} ({}) are both given; keep one", loaded.subject(found[1]), found[0],
                               loaded.origin(found[0])));
}

void check_model(const Loaded& loaded) {
  check_one_of(
      loaded, kModel,
      "no model is given; set one of model.preset, model.config and model.init_from (in a file: --config FILE)");
}

void check_mix(const Loaded& loaded) {
  try {
    for (const MixedPath& each : mixed_paths(loaded.config.data.mix))
      if (each.path == "random") throw InputError("'random' is no text; leave it out");
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", loaded.subject("data.mix"), error.what()));
  }
  if (!loaded.config.data.source_field.empty())
    throw InputError(fmt::format("{}, but data.mix ({}) is of texts and not of pairs", is(loaded, "data.source_field"),
                                 loaded.origin("data.mix")));
  if (loaded.config.validation.split > 0)
    throw InputError(fmt::format("{}, but data.mix ({}) has no end, and so no share; set validation.path",
                                 is(loaded, "validation.split"), loaded.origin("data.mix")));
}

void check_data(const Loaded& loaded) {
  check_one_of(
      loaded, kData,
      "no data is given; set data.path (a .txt, .jsonl or .parquet file, a folder, embedded or random), data.mix, "
      "data.tokens or data.images");
  const Data& data = loaded.config.data;
  const char* const key = data.mix.empty() ? "data.path" : "data.mix";
  if ((data.path == "random" || !data.mix.empty()) && loaded.config.training.steps == 0)
    throw InputError(is(loaded, key) + ", which has no end; set training.steps");
  const bool is_text = (!data.path.empty() && data.path != "random") || !data.mix.empty();
  if (is_text && data.tokenizer.empty() && data.input_ids_field.empty())
    throw InputError(
        fmt::format("{}, but no data.tokenizer is given; name a tokenizer's file or folder, or bytes for byte-level",
                    is(loaded, key)));
  if (!data.mix.empty()) check_mix(loaded);
}

void check_validation(const Loaded& loaded) {
  const Validation& validation = loaded.config.validation;
  const auto data = given(loaded, kHeldOut);
  for (const char* const key : {"validation.interval", "validation.epoch_interval"})
    if (data.empty() && std::get<int64_t>(find_key(key)->get(loaded.config)) > 0)
      throw InputError(
          fmt::format("{}, but no held-out data is given; set validation.path, validation.tokens, validation.images or "
                      "validation.split",
                      is(loaded, key)));
  if (!data.empty()) check_one_of(loaded, kHeldOut, "");
  if (validation.split > 0 && !loaded.config.data.tokens.empty())
    throw InputError(fmt::format("{}, but data.tokens ({}) is a list of batches; set validation.tokens",
                                 is(loaded, "validation.split"), loaded.origin("data.tokens")));
  if (validation.split > 0 && loaded.config.data.path == "random")
    throw InputError(fmt::format("{}, but data.path is random ({}), which has no end, and so no share",
                                 is(loaded, "validation.split"), loaded.origin("data.path")));
  if (!validation.path.empty() && loaded.config.data.tokenizer.empty() && loaded.config.data.input_ids_field.empty())
    throw InputError(fmt::format("{}, but no data.tokenizer is given; name that of the training data",
                                 is(loaded, "validation.path")));
}

void check_pairs(const Loaded& loaded) {
  const Data& data = loaded.config.data;
  if (data.source_field.empty() != data.target_field.empty()) {
    const char* const given = data.source_field.empty() ? "data.target_field" : "data.source_field";
    throw InputError(fmt::format("{}, but {} is not given; pairs need both", is(loaded, given),
                                 data.source_field.empty() ? "data.source_field" : "data.target_field"));
  }
  if (data.source_field.empty() && !loaded.config.sample.path.empty())
    throw InputError(is(loaded, "sample.path") + ", but no data.source_field and data.target_field are given");
}

void check_parallel(const Loaded& loaded) {
  const Parallel& parallel = loaded.config.parallel;
  for (const char* const key : {"parallel.shard", "parallel.replicate"})
    if (std::get<int64_t>(find_key(key)->get(loaded.config)) == 0)
      throw InputError(is(loaded, key) + "; use 1 or more, or -1 for the rest");
  if (!traits_of(parallel.strategy).shards && parallel.shard > 1)
    throw InputError(fmt::format("{}, but parallel.strategy is {} ({}); leave parallel.shard out, or use {}",
                                 is(loaded, "parallel.shard"), word_of(parallel.strategy),
                                 loaded.origin("parallel.strategy"), word_of(Strategy::FullShard)));
}

bool is_given(const Loaded& loaded, const char* key) {
  return loaded.origins.contains(key);
}

/// A word that says the opposite of parallel.strategy where that is given too.
void check_reshard(const Loaded& loaded) {
  const Parallel& parallel = loaded.config.parallel;
  if (parallel.reshard_after_forward.empty()) return;
  const std::string subject = is(loaded, "parallel.reshard_after_forward");
  const auto reshard = parse_reshard_after_forward(parallel.reshard_after_forward);
  if (!reshard)
    throw InputError(subject + "; use true, false, or the number of ranks that share a copy until backward");
  const std::string word = word_of(parallel.strategy);
  const std::string strategy = fmt::format("parallel.strategy is {} ({})", word, loaded.origin("parallel.strategy"));
  const StrategyTraits traits = traits_of(parallel.strategy);
  const bool is_false = *reshard == ReshardAfterForward(false);
  if (!traits.shards)
    throw InputError(fmt::format("{}, but {}, which shards nothing; leave one out", subject, strategy));
  if (!traits.reshards_after_forward && !is_false)
    throw InputError(
        fmt::format("{}, but {}, which keeps parameters until backward; leave one out", subject, strategy));
  if (traits.reshards_after_forward && is_false && is_given(loaded, "parallel.strategy"))
    throw InputError(fmt::format("{}, but {}, which gives parameters back after forward; leave one out, or use {}",
                                 subject, strategy,
                                 word_of(traits.is_hybrid ? Strategy::HybridShardZero2 : Strategy::ShardGradOp)));
}

void check_loading(const Loaded& loaded) {
  const Parallel& parallel = loaded.config.parallel;
  if (parallel.cpu_ram_efficient_loading && !parallel.sync_module_states &&
      is_given(loaded, "parallel.sync_module_states"))
    throw InputError(
        fmt::format("{}, but parallel.sync_module_states is false ({}), and what rank 0 alone reads it must broadcast; "
                    "leave one out",
                    is(loaded, "parallel.cpu_ram_efficient_loading"), loaded.origin("parallel.sync_module_states")));
}

void check_exclude(const Loaded& loaded) {
  if (loaded.config.checkpoint.exclude.empty()) return;
  for (const std::string& word : split(loaded.config.checkpoint.exclude, ','))
    if (const auto name = trim(word); name != "optimizer" && name != "data" && name != "progress")
      throw InputError(
          fmt::format("{}; '{}' is none of optimizer, data and progress", is(loaded, "checkpoint.exclude"), name));
}

void check_name_map(const Loaded& loaded) {
  if (!loaded.config.model.name_map.empty() && loaded.config.model.init_from.empty())
    throw InputError(
        fmt::format("{}, but no model.init_from is given, whose names it is for", is(loaded, "model.name_map")));
}

void check_checkpoint(const Loaded& loaded) {
  check_exclude(loaded);
  const Checkpoint& checkpoint = loaded.config.checkpoint;
  if (checkpoint.overwrite && checkpoint.name.empty())
    throw InputError(is(loaded, "checkpoint.overwrite") + ", but no checkpoint.name says what the one folder is called");
  if (checkpoint.create_seed_checkpoint && !checkpoint.enabled)
    throw InputError(fmt::format("{}, but checkpoint.enabled is false ({}); set it to true",
                                 is(loaded, "checkpoint.create_seed_checkpoint"), loaded.origin("checkpoint.enabled")));
  if (names_checkpoint(checkpoint) && !checkpoint.initial_load_path.empty())
    throw InputError(fmt::format("{}, and checkpoint.resume names another to begin from ({}); keep one",
                                 is(loaded, "checkpoint.initial_load_path"), loaded.origin("checkpoint.resume")));
  if (!checkpoint.initial_load_model_only && checkpoint.initial_load_path.empty())
    throw InputError(fmt::format("{}, but no checkpoint.initial_load_path is given, which it is about",
                                 is(loaded, "checkpoint.initial_load_model_only")));
  if (checkpoint.enabled && checkpoint.interval > 0 && checkpoint.keep < 2 && !checkpoint.overwrite)
    throw InputError(fmt::format(
        "{}, but checkpoint.interval is {} ({}); use 2 or more, so that a damaged checkpoint has one before it",
        is(loaded, "checkpoint.keep"), checkpoint.interval, loaded.origin("checkpoint.interval")));
}

/// What adapters need, and what is not offered beside them.
void check_lora(const Loaded& loaded) {
  const Config& config = loaded.config;
  if (config.lora.rank == 0) return;
  const std::string subject = is(loaded, "lora.rank");
  if (config.model.init_from.empty())
    throw InputError(subject + ", but no model.init_from is given, whose weights the adapters are for");
  if (!config.training.freeze.empty())
    throw InputError(fmt::format("{}, which freezes all but the adapters; leave training.freeze out ({})", subject,
                                 loaded.origin("training.freeze")));
  if (config.parallel.tensor > 1)
    throw InputError(fmt::format("{}, but parallel.tensor is {} ({}), and adapters are not split by it; use 1", subject,
                                 config.parallel.tensor, loaded.origin("parallel.tensor")));
  if (config.lora.dropout > 0 && config.parallel.context > 1)
    throw InputError(fmt::format(
        "{}, but parallel.context is {} ({}), whose ranks would drop the same places of other tokens; use 0",
        is(loaded, "lora.dropout"), config.parallel.context, loaded.origin("parallel.context")));
  if (config.lora.base_dtype == BaseDType::Nf4 && config.float8.recipe != Float8Recipe::None)
    throw InputError(fmt::format("{}, and {}, for which the same layers would be in 8 bits; leave one out",
                                 is(loaded, "lora.base_dtype"), is(loaded, "float8.recipe")));
  const bool is_full = config.checkpoint.state_dict == StateDict::Full;
  if (is_full || config.checkpoint.final_state_dict == FinalStateDict::Full)
    throw InputError(
        fmt::format("{}, and {}, which is a whole model's; use sharded, and `trainyard checkpoint export` or `merge`",
                    subject, is(loaded, is_full ? "checkpoint.state_dict" : "checkpoint.final_state_dict")));
  if (!config.checkpoint.initial_load_path.empty())
    throw InputError(fmt::format("{}, and {}; name the base in model.init_from", subject,
                                 is(loaded, "checkpoint.initial_load_path")));
}

void check_batch(const Loaded& loaded) {
  const Training& training = loaded.config.training;
  if (training.batch_size == 0 && training.global_batch_size == 0)
    throw InputError(is(loaded, "training.batch_size") +
                     ", but no training.global_batch_size is given, of which it would be a part");
}

/// A graph works with memory of the device alone.
void check_graphs(const Loaded& loaded) {
  if (loaded.config.device.cuda_graphs != CudaGraphs::Always) return;
  for (const char* const key : {"parallel.offload", "activation_checkpointing.offload"})
    if (std::get<bool>(find_key(key)->get(loaded.config)))
      throw InputError(fmt::format("{}, but {} is true ({}), which moves what it needs through the host; leave one out",
                                   is(loaded, "device.cuda_graphs"), key, loaded.origin(key)));
}

/// A folder of weights has the sizes that it has.
void check_sizes(const Loaded& loaded) {
  if (loaded.config.model.init_from.empty()) return;
  for (const char* const key : {"model.hidden_size", "model.intermediate_size", "model.layers", "model.heads",
                                "model.kv_heads", "model.vocab_size"})
    if (std::get<int64_t>(find_key(key)->get(loaded.config)) != 0)
      throw InputError(fmt::format("{}, but the weights of model.init_from ({}) have sizes of their own; leave it out",
                                   is(loaded, key), loaded.origin("model.init_from")));
}

/// `read` takes the text of `key` apart; what it throws is said of the key.
template <typename Read>
void check_text(const Loaded& loaded, const char* key, const Read& read) {
  try {
    static_cast<void>(read(std::get<std::string>(find_key(key)->get(loaded.config))));
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", loaded.subject(key), error.what()));
  }
}

void check_lines(const Loaded& loaded) {
  for (const char* const key : {"metrics.line", "metrics.validation_line"})
    check_text(loaded, key, [](const std::string& pattern) { return metrics::LineFormat(pattern); });
}

void check_precision(const Loaded& loaded) {
  check_text(loaded, "parallel.precision", precision_rules);
  check_text(loaded, "training.loss_scale",
             [&](const std::string&) { return constant_loss_scale(loaded.config.training); });
}

void check_profile(const Loaded& loaded) {
  const Metrics& metrics = loaded.config.metrics;
  if (metrics.profile_interval > 0 && metrics.profile_steps > metrics.profile_interval)
    throw InputError(fmt::format("{}, but metrics.profile_interval is {} ({}); use at most that",
                                 is(loaded, "metrics.profile_steps"), metrics.profile_interval,
                                 loaded.origin("metrics.profile_interval")));
}

/// Neither does the other's work: nccl moves the memory of GPUs, the others that of the host.
void check_backend(const Loaded& loaded) {
  const Backend backend = loaded.config.comm.backend;
  const DeviceChoice device = loaded.config.device.kind;
  const bool contradicts = backend == Backend::Nccl
                               ? device == DeviceChoice::Cpu
                               : (backend == Backend::Gloo || backend == Backend::Mpi) && device == DeviceChoice::Cuda;
  if (!contradicts) return;
  throw InputError(
      fmt::format("{}, which moves {}, but device.kind is {} ({}); leave it out", is(loaded, "comm.backend"),
                  backend == Backend::Nccl ? "the memory of GPUs" : "host memory",
                  format_value(find_key("device.kind")->get(loaded.config)), loaded.origin("device.kind")));
}

}  // namespace

void check(const Loaded& loaded) {
  check_model(loaded);
  check_name_map(loaded);
  check_sizes(loaded);
  check_data(loaded);
  check_validation(loaded);
  check_batch(loaded);
  check_graphs(loaded);
  check_pairs(loaded);
  check_parallel(loaded);
  check_reshard(loaded);
  check_loading(loaded);
  check_details(loaded);
  check_lora(loaded);
  check_checkpoint(loaded);
  check_lines(loaded);
  check_precision(loaded);
  check_profile(loaded);
  check_backend(loaded);
}

void check_for_plan(const Loaded& loaded) {
  check_model(loaded);
  check_batch(loaded);
  check_parallel(loaded);
  check_reshard(loaded);
  check_precision(loaded);
}

bool names_checkpoint(const Checkpoint& settings) {
  return settings.resume != "auto" && settings.resume != "extend" && settings.resume != "never";
}

bool excludes(const Key& one, const Key& other) {
  const auto holds = [](std::span<const char* const> list, const Key& key) {
    return std::ranges::find(list, key.full_name(), [](const char* name) { return std::string(name); }) != list.end();
  };
  const std::array<std::span<const char* const>, 3> lists{kModel, kData, kHeldOut};
  return &one != &other &&
         std::ranges::any_of(lists, [&](const auto& list) { return holds(list, one) && holds(list, other); });
}

namespace {

/// Those that share a micro-batch.
struct Readers {
  int64_t count;     ///< ranks that have rows of their own
  std::string text;  ///< "4 ranks, of which 2 share their rows,"
};

Readers readers_of(const Config& config, int world) {
  const int64_t sharing = config.parallel.ranks_sharing_rows();
  return {std::max<int64_t>(world / sharing, 1),
          fmt::format("{} rank{}{}", world, world == 1 ? "" : "s",
                      sharing > 1 ? fmt::format(", of which {} share their rows,", sharing) : "")};
}

/// What the rows of a step over all ranks leave for the third factor beside `key`, which has this value, and the ranks.
int64_t rest_of_batch(const Loaded& loaded, const char* key, int64_t value, const Readers& readers) {
  const int64_t rows = loaded.config.training.global_batch_size, together = value * readers.count;
  if (rows % together != 0)
    throw InputError(fmt::format("{}, but {} {} on {} makes {} rows at once; use a multiple of {}",
                                 is(loaded, "training.global_batch_size"), key, value, readers.text, together,
                                 together));
  return rows / together;
}

}  // namespace

Loaded for_world(Loaded loaded, int world) {
  Training& training = loaded.config.training;
  if (training.global_batch_size == 0) return loaded;
  const Readers readers = readers_of(loaded.config, world);
  const bool gives_steps = loaded.layer("training.accumulation_steps") != kDefaultLayer;
  if (training.batch_size == 0) {
    training.batch_size = rest_of_batch(loaded, "training.accumulation_steps", training.accumulation_steps, readers);
    return loaded;
  }
  const int64_t together = training.batch_size * readers.count;
  const int64_t steps = gives_steps ? training.accumulation_steps
                                    : rest_of_batch(loaded, "training.batch_size", training.batch_size, readers);
  if (together * steps != training.global_batch_size)
    throw InputError(fmt::format(
        "{}, but training.batch_size {} ({}) with training.accumulation_steps {} ({}) on {} makes {}; leave one out",
        is(loaded, "training.global_batch_size"), training.batch_size, loaded.origin("training.batch_size"), steps,
        loaded.origin("training.accumulation_steps"), readers.text, together * steps));
  training.accumulation_steps = steps;
  return loaded;
}

}  // namespace trainyard::config
