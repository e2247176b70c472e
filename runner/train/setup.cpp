#include "train/setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/cpus.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoint/weights.h"
#include "config/precision.h"
#include "config/value.h"
#include "data/loaders.h"
#include "data/prefetched.h"
#include "train/demo/demo.h"
#include "train/images.h"
#include "train/pairs.h"

namespace trainyard::train {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLargestConfigBytes = size_t{1} << 20;
constexpr const char *kEmbedded = "embedded", *kRandom = "random";  // in place of a path
constexpr int64_t kMostThreads = 4096;                              // as device.threads
constexpr int kMostGathers = 2;                                     // of limit_all_gathers, as PyTorch's FSDP

models::ModelConfig read_model_config(const fs::path& path) {
  return models::parse_config(read_file(path, kLargestConfigBytes), path);
}

/// Sizes that the configuration gives go before the model's own. A head as wide as hidden_size / heads stays so.
models::ModelConfig with_sizes(models::ModelConfig config, const config::Model& model) {
  struct Size {
    const char* key;
    int64_t models::ModelConfig::*member;
    int64_t given;
  };
  const Size sizes[] = {{"hidden_size", &models::ModelConfig::hidden_size, model.hidden_size},
                        {"intermediate_size", &models::ModelConfig::intermediate_size, model.intermediate_size},
                        {"layers", &models::ModelConfig::layers, model.layers},
                        {"heads", &models::ModelConfig::heads, model.heads},
                        {"kv_heads", &models::ModelConfig::kv_heads, model.kv_heads},
                        {"vocab_size", &models::ModelConfig::vocab_size, model.vocab_size}};
  const auto is_given = [](const Size& size) { return size.given > 0; };
  if (std::ranges::none_of(sizes, is_given)) return config;
  const bool has_plain_heads = config.heads > 0 && config.head_dim * config.heads == config.hidden_size;
  for (const Size& size : sizes)
    if (is_given(size)) config.*size.member = size.given;
  if (has_plain_heads) config.head_dim = config.hidden_size / config.heads;
  // Read back, so that sizes that do not fit each other are refused as they are in a file.
  const models::ModelConfig made =
      models::parse_config(models::to_hugging_face(config), "the model with the sizes of the configuration");
  for (const Size& size : sizes)
    if (is_given(size) && made.*size.member != size.given)
      throw InputError(fmt::format("model.{} is {}, but a {} model has no such size to choose; leave it out", size.key,
                                   size.given, made.family));
  return made;
}

data::TokenArray corpus_of(const config::Data& settings, const tokenizer::Tokenizer& tokenizer) {
  if (settings.path == kEmbedded)
    return data::tokenise_text(demo::corpus(), tokenizer, settings.append_eos, "the embedded corpus");
  return data::open_corpus({.path = settings.path,
                            .field = settings.field,
                            .append_eos = settings.append_eos,
                            .cache_dir = settings.cache_dir},
                           tokenizer);
}

}  // namespace

DType dtype_of(config::Precision precision) {
  switch (precision) {
    case config::Precision::Float32:
      return DType::Float32;
    case config::Precision::BFloat16:
      return DType::BFloat16;
    case config::Precision::Float16:
      return DType::Float16;
  }
  throw std::logic_error("dtype_of: no such precision");
}

models::ModelConfig model_config_of(const config::Model& model) {
  if (!model.preset.empty()) return with_sizes(models::preset(model.preset), model);
  if (model.init_from.empty()) return with_sizes(read_model_config(model.config), model);
  const fs::path beside = checkpoint::config_path_of(model.init_from);
  const std::string recorded = checkpoint::config_json_of(model.init_from);
  return recorded.empty() ? read_model_config(beside) : models::parse_config(recorded, beside);
}

models::ModelConfig model_config_of(const checkpoint::Checkpoint& checkpoint) {
  const auto text = checkpoint.state().find("config_json");
  if (text == checkpoint.state().end() || !text->is_string())
    throw InputError(fmt::format("{}: the state has no config_json: not a checkpoint of a training run",
                                 checkpoint.path().string()));
  return models::parse_config(text->get<std::string>(), checkpoint.path() / "config_json");
}

namespace {

shard::Reshard reshard_of(const config::Parallel& parallel) {
  const bool keeps = parallel.strategy == config::Strategy::ShardGradOp ||
                     parallel.strategy == config::Strategy::HybridShardZero2 ||
                     parallel.reshard_after_forward == "false" || parallel.reshard_after_forward == "1";
  return keeps ? shard::Reshard::AfterBackward : shard::Reshard::AfterForward;
}

shard::Prefetch prefetch_of(const config::Parallel& parallel) {
  const auto both = static_cast<int>(parallel.prefetch), forward = static_cast<int>(parallel.forward_prefetch);
  return {.forward = forward < 0 ? both : forward,
          .backward = both,
          .when = static_cast<shard::BackwardPrefetch>(parallel.backward_prefetch),
          .early = parallel.unshard_early,
          .most_in_flight = parallel.limit_all_gathers ? kMostGathers : 0};
}

shard::MixedPrecision precision_of(const config::Parallel& parallel) {
  shard::MixedPrecision precision{.param_dtype = dtype_of(parallel.param_dtype),
                                  .reduce_dtype = dtype_of(parallel.reduce_dtype),
                                  .cast_forward_inputs = parallel.cast_forward_inputs};
  if (parallel.output_dtype != config::OutputPrecision::AsComputed)
    precision.output_dtype = dtype_of(static_cast<config::Precision>(parallel.output_dtype));
  return precision;
}

/// What a rule does not say is as for all.
std::vector<PrecisionRule> precision_rules_of(const config::Config& config) {
  std::vector<PrecisionRule> rules;
  for (const config::PrecisionRule& rule : config::precision_rules(config.parallel.precision))
    rules.push_back({rule.pattern, precision_of(config::with(config, rule).parallel)});
  return rules;
}

std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> words;
  for (const std::string& each : split(text, ','))
    if (const auto word = trim(each); !word.empty()) words.emplace_back(word);
  return words;
}

std::optional<Float8Layers> float8_of(const config::Float8& settings) {
  if (settings.recipe == config::Float8Recipe::None) return std::nullopt;
  // The schema's words begin with none.
  const auto recipe = static_cast<autograd::Float8Recipe>(static_cast<int>(settings.recipe) - 1);
  return Float8Layers{recipe, listed(settings.filter_fqns)};
}

}  // namespace

shard::Policy policy_of(const config::Config& config, Device device) {
  return {.device = device,
          .offload = config.parallel.offload,
          .reshard = reshard_of(config.parallel),
          .precision = precision_of(config.parallel),
          .float8_all_gather = config.float8.all_gather,
          .prefetch = prefetch_of(config.parallel),
          .sync_every_micro_batch = config.training.sync_every_micro_batch,
          .bucket_bytes = config.parallel.bucket_cap_mb << 20};
}

Sharding sharding_of(const config::Config& config, MeshSize mesh, Device device) {
  return {.mesh = mesh,
          .policy = policy_of(config, device),
          .wrap = {.policy = static_cast<Wrap::Policy>(config.parallel.wrap),
                   .classes = listed(config.parallel.transformer_layer_cls_to_wrap),
                   .min_num_params = config.parallel.min_num_params},
          .freeze = listed(config.training.freeze),
          .precision = precision_rules_of(config),
          .float8 = float8_of(config.float8)};
}

std::vector<MemoryKind> kinds_on_host(const config::Config& config, Device device) {
  using enum MemoryKind;
  if (device.kind == DeviceKind::Cpu) return {};
  if (config.parallel.offload) return {Offloaded, Parameters, Gradients, Optimizer};
  return {Offloaded};
}

optim::LossScaling loss_scaling_of(const config::Training& training, const shard::Engine& engine) {
  using Kind = optim::LossScaling::Kind;
  const bool uses_float16 =
      std::ranges::any_of(engine.groups(), [](const auto& group) { return shard::uses_float16(group->precision()); });
  const auto constant = config::constant_loss_scale(training);
  optim::LossScaling scaling{.init_scale = constant.value_or(training.loss_scale_init),
                             .growth_factor = training.loss_scale_growth_factor,
                             .backoff_factor = training.loss_scale_backoff_factor,
                             .growth_interval = training.loss_scale_growth_interval};
  if (constant)
    scaling.kind = Kind::Constant;
  else if (training.loss_scale == "auto" && uses_float16)
    scaling.kind = Kind::Dynamic;
  return scaling;
}

FilledBy filled_by(const config::Config& config) {
  const bool is_read = !config.model.init_from.empty();
  const bool by_rank_0 = config.parallel.sync_module_states || (is_read && config.parallel.cpu_ram_efficient_loading);
  return by_rank_0 ? FilledBy::Rank0 : FilledBy::EachRank;
}

void set_recompute(models::Model& model, const config::ActivationCheckpointing& settings) {
  using autograd::Retention;
  using config::CheckpointingMode;
  // Without recomputation nothing marks what waits for backward; selective keeps all of it that is costly to make.
  const bool keeps_products = settings.mode == CheckpointingMode::Selective || settings.mode == CheckpointingMode::None;
  const bool recomputes = settings.mode != CheckpointingMode::None || settings.offload;
  const int64_t every = settings.mode == CheckpointingMode::EveryN ? settings.n : 1;
  int64_t number = 0;
  for (nn::Module* const block : model.blocks())
    block->set_recompute(
        recomputes && ++number % every == 0,
        {.keep = keeps_products ? Retention::Keep::Products : Retention::Keep::Inputs, .offload = settings.offload});
}

int threads_of(const config::DeviceSection& device, int local_world) {
  if (device.threads > 0) return static_cast<int>(device.threads);
  // Who started the ranks may know of others on this host: torchrun, or the pods of a job on one machine.
  const char* const told = std::getenv("OMP_NUM_THREADS");
  if (const auto count = told ? parse_int(told) : std::nullopt; count && *count > 0)
    return static_cast<int>(std::min<int64_t>(*count, kMostThreads));
  const char* const granted = std::getenv("TRAINYARD_CPUS");
  return std::max(1, cpus_here(granted ? std::optional<std::string_view>(granted) : std::nullopt) / local_world);
}

std::unique_ptr<tokenizer::Tokenizer> tokenizer_of(const config::Data& data) {
  return data.tokenizer.empty() ? nullptr : tokenizer::load_tokenizer(data.tokenizer);
}

std::vector<std::string> tokenizer_files_of(const config::Data& data) {
  const fs::path path = data.tokenizer;
  if (fs::is_regular_file(path)) return {path.string()};
  std::vector<std::string> files;
  for (const char* const name : {"tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "merges.txt",
                                 "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"})
    if (!data.tokenizer.empty() && fs::is_regular_file(path / name)) files.push_back((path / name).string());
  return files;
}

namespace {

/// Refuses data that models of this kind do not learn from.
void check_data_fits(const config::Data& data, const models::ModelConfig& model) {
  using models::LearnsFrom;
  const LearnsFrom wanted = models::learns_from(model);
  if (wanted == LearnsFrom::Images && data.images.empty())
    throw InputError(fmt::format("a {} model learns from labelled images; set data.images", model.family));
  if (wanted != LearnsFrom::Images && !data.images.empty())
    throw InputError(fmt::format("data.images is given, but a {} model learns from text; set data.path", model.family));
  if (wanted == LearnsFrom::Pairs && data.tokens.empty() && !is_of_pairs(data))
    throw InputError(
        fmt::format("a {} model learns from pairs of a source and a target; set data.source_field and "
                    "data.target_field",
                    model.family));
}

}  // namespace

void require_text_files(const config::Loaded& loaded) {
  const config::Config& config = loaded.config;
  for (const auto& [key, path] : {std::pair("data.path", config.data.path),
                                  {"validation.path", config.validation.path},
                                  {"sample.path", config.sample.path}}) {
    if (path.empty() || path == kEmbedded || path == kRandom || fs::exists(path)) continue;
    throw InputError(fmt::format("{} is '{}': no such file or folder, and nothing is downloaded", loaded.subject(key),
                                 config::shown(path)));
  }
}

std::unique_ptr<data::Loader> loader_of(const config::Config& config, const tokenizer::Tokenizer* tokenizer,
                                        const models::ModelConfig& model, int rank, int world) {
  const data::Place place{rank, world};
  check_data_fits(config.data, model);
  if (!config.data.images.empty())
    return image_loader_of(config, model, place, data::Part::Training, data::Repeat::Forever);
  if (!config.data.tokens.empty())
    return data::token_batches(
        config.data.tokens,
        {.place = place, .accumulation_steps = config.training.accumulation_steps, .vocab_size = model.vocab_size});
  if (is_of_pairs(config.data)) return pair_loader_of(config, *tokenizer, model, place);
  if (config.data.path == kRandom)
    return data::random_tokens({.place = place,
                                .sequence_length = config.training.sequence_length,
                                .batch_size = config.training.batch_size,
                                .accumulation_steps = config.training.accumulation_steps,
                                .seed = config.data.seed,
                                .vocab_size = model.vocab_size});
  const data::TokenArray corpus = corpus_of(config.data, *tokenizer);
  data::check_ids(corpus, model.vocab_size);
  const data::PackingOptions options{.place = place,
                                     .sequence_length = config.training.sequence_length,
                                     .batch_size = config.training.batch_size,
                                     .accumulation_steps = config.training.accumulation_steps,
                                     .seed = config.data.seed,
                                     .shuffle = config.data.shuffle};
  return by_workers(config.data, [&] { return data::packed_loader(corpus, options); });
}

std::unique_ptr<data::Loader> by_workers(const config::Data& data,
                                         const std::function<std::unique_ptr<data::Loader>()>& make) {
  if (data.num_workers == 0) return make();
  return data::prefetched(make, {.workers = data.num_workers, .ahead = data.prefetch_factor});
}

std::unique_ptr<data::Loader> validation_loader_of(const config::Config& config, const tokenizer::Tokenizer* tokenizer,
                                                   const models::ModelConfig& model, int rank, int world) {
  const config::Validation& validation = config.validation;
  const data::Place place{rank, world};
  if (!validation.tokens.empty())
    return data::token_batches(validation.tokens,
                               {.place = place, .prefer = data::Prefer::SingleBatch, .vocab_size = model.vocab_size});
  if (validation.path.empty() && validation.images.empty()) return nullptr;
  const int64_t rows = validation.batch_size > 0 ? validation.batch_size : config.training.batch_size;
  config::Config held_out = config;
  held_out.data.path = validation.path, held_out.data.images = validation.images;
  held_out.data.max_samples = 0, held_out.data.num_workers = 0;
  held_out.data.shuffle = false, held_out.training.batch_size = rows, held_out.training.accumulation_steps = 1;
  check_data_fits(held_out.data, model);
  if (!validation.images.empty()) return image_loader_of(held_out, model, place, data::Part::Test, data::Repeat::Never);
  if (is_of_pairs(config.data)) return pair_loader_of(held_out, *tokenizer, model, place, data::Repeat::Never);
  data::TokenArray corpus = corpus_of(held_out.data, *tokenizer);
  data::check_ids(corpus, model.vocab_size);
  return data::packed_loader(std::move(corpus), {.place = place,
                                                 .sequence_length = config.training.sequence_length,
                                                 .batch_size = rows,
                                                 .shuffle = false,
                                                 .repeat = data::Repeat::Never});
}

int64_t total_steps_of(const config::Training& training, const data::Loader& loader, const Pace& pace) {
  const auto available = loader.steps_available();
  if (training.steps == 0) return available ? *available : pace.steps_until(training.epochs);
  if (available && training.steps > *available)
    throw InputError(fmt::format("training.steps is {}, but data.tokens has {} batches, one a step; use at most {}",
                                 training.steps, *available, *available));
  return training.steps;
}

}  // namespace trainyard::train
