#include "assemble/run_spec.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <stdexcept>

#include "base/text.h"
#include "config/precision.h"
#include "config/strategy.h"

namespace trainyard::train {

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

namespace {

constexpr int kMostGathers = 2;  // of limit_all_gathers, as PyTorch's FSDP

/// PyTorch spells strategies so: FULL_SHARD.
std::string strategy_word_of(config::Strategy strategy) {
  std::string word = config::word_of(strategy);
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return word;
}

std::optional<DType> output_dtype_of(config::OutputPrecision precision) {
  switch (precision) {
    case config::OutputPrecision::Float32:
      return DType::Float32;
    case config::OutputPrecision::BFloat16:
      return DType::BFloat16;
    case config::OutputPrecision::Float16:
      return DType::Float16;
    case config::OutputPrecision::AsComputed:
      return std::nullopt;
  }
  throw std::logic_error("output_dtype_of: no such precision");
}

shard::BackwardPrefetch backward_prefetch_of(config::BackwardPrefetch when) {
  switch (when) {
    case config::BackwardPrefetch::Pre:
      return shard::BackwardPrefetch::Pre;
    case config::BackwardPrefetch::Post:
      return shard::BackwardPrefetch::Post;
    case config::BackwardPrefetch::None:
      return shard::BackwardPrefetch::None;
  }
  throw std::logic_error("backward_prefetch_of: no such time");
}

context_parallel::Method context_method_of(config::ContextMethod method) {
  switch (method) {
    case config::ContextMethod::Ring:
      return context_parallel::Method::Ring;
    case config::ContextMethod::AllGather:
      return context_parallel::Method::AllGather;
    case config::ContextMethod::Ulysses:
      return context_parallel::Method::Ulysses;
  }
  throw std::logic_error("context_method_of: no such method");
}

data::RowParts::Balance context_balance_of(config::ContextBalance balance) {
  switch (balance) {
    case config::ContextBalance::HeadTail:
      return data::RowParts::Balance::HeadTail;
    case config::ContextBalance::None:
      return data::RowParts::Balance::None;
  }
  throw std::logic_error("context_balance_of: no such balance");
}

Wrap::Policy wrap_policy_of(config::Wrap wrap) {
  switch (wrap) {
    case config::Wrap::TransformerBased:
      return Wrap::Policy::Transformer;
    case config::Wrap::SizeBased:
      return Wrap::Policy::Size;
    case config::Wrap::None:
      return Wrap::Policy::None;
  }
  throw std::logic_error("wrap_policy_of: no such policy");
}

std::optional<autograd::Float8Recipe> recipe_of(config::Float8Recipe recipe) {
  switch (recipe) {
    case config::Float8Recipe::None:
      return std::nullopt;
    case config::Float8Recipe::Tensorwise:
      return autograd::Float8Recipe::Tensorwise;
    case config::Float8Recipe::Rowwise:
      return autograd::Float8Recipe::Rowwise;
    case config::Float8Recipe::RowwiseWithGwHp:
      return autograd::Float8Recipe::RowwiseWithGwHp;
  }
  throw std::logic_error("recipe_of: no such recipe");
}

shard::Prefetch prefetch_of(const config::Parallel& parallel) {
  const auto both = static_cast<int>(parallel.prefetch), forward = static_cast<int>(parallel.forward_prefetch);
  return {.forward = forward < 0 ? both : forward,
          .backward = both,
          .when = backward_prefetch_of(parallel.backward_prefetch),
          .early = parallel.unshard_early,
          .most_in_flight = parallel.limit_all_gathers ? kMostGathers : 0};
}

shard::MixedPrecision precision_of(const config::Parallel& parallel) {
  return {.param_dtype = dtype_of(parallel.param_dtype),
          .reduce_dtype = dtype_of(parallel.reduce_dtype),
          .output_dtype = output_dtype_of(parallel.output_dtype),
          .cast_forward_inputs = parallel.cast_forward_inputs};
}

/// The rules of parallel.precision. A field that a rule does not give is that of all groups.
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
  const auto recipe = recipe_of(settings.recipe);
  return recipe ? std::optional(Float8Layers{*recipe, listed(settings.filter_fqns)}) : std::nullopt;
}

std::optional<nn::Lora> lora_of(const config::Lora& settings) {
  if (settings.rank == 0) return std::nullopt;
  return nn::Lora{settings.rank, settings.alpha, settings.dropout, listed(settings.target_modules),
                  settings.base_dtype == config::BaseDType::Nf4};
}

std::optional<DType> base_dtype_of(config::BaseDType dtype) {
  switch (dtype) {
    case config::BaseDType::Auto:
    case config::BaseDType::Nf4:  // of what is no linear layer of a block
      return std::nullopt;
    case config::BaseDType::BFloat16:
      return DType::BFloat16;
    case config::BaseDType::Float16:
      return DType::Float16;
  }
  throw std::logic_error("base_dtype_of: no such dtype");
}

shard::Policy policy_of(const config::Config& config, Device device) {
  const bool keeps = config::keeps_until_backward(config.parallel);
  return {.device = device,
          .offload = config.parallel.offload,
          .reshard = keeps ? shard::Reshard::AfterBackward : shard::Reshard::AfterForward,
          .precision = precision_of(config.parallel),
          .base_dtype = base_dtype_of(config.lora.base_dtype),
          .float8_all_gather = config.float8.all_gather,
          .prefetch = prefetch_of(config.parallel),
          .sync_every_micro_batch = config.training.sync_every_micro_batch,
          .bucket_bytes = config.parallel.bucket_cap_mb << 20};
}

Sharding sharding_of(const config::Config& config, const MeshSize& mesh, Device device) {
  return {.mesh = mesh,
          .policy = policy_of(config, device),
          .wrap = {.policy = wrap_policy_of(config.parallel.wrap),
                   .classes = listed(config.parallel.transformer_layer_cls_to_wrap),
                   .min_num_params = config.parallel.min_num_params},
          .freeze = listed(config.training.freeze),
          .precision = precision_rules_of(config),
          .float8 = float8_of(config.float8),
          .lora = lora_of(config.lora),
          .context = {.method = context_method_of(config.parallel.context_method),
                      .balance = context_balance_of(config.parallel.context_balance)},
          .tensor = {.sequence_parallel = config.parallel.sequence_parallel,
                     .loss_parallel = config.parallel.loss_parallel,
                     .is_async = config.parallel.async_tensor}};
}

Recompute recompute_of(const config::ActivationCheckpointing& settings) {
  using autograd::Retention;
  using config::CheckpointingMode;
  // Without recomputation nothing marks what waits for backward; selective keeps all of it that is costly to make.
  const bool keeps_products = settings.mode == CheckpointingMode::Selective || settings.mode == CheckpointingMode::None;
  return {
      .is_on = settings.mode != CheckpointingMode::None || settings.offload,
      .every = settings.mode == CheckpointingMode::EveryN ? settings.n : 1,
      .retention = {.keep = keeps_products ? Retention::Keep::Products : Retention::Keep::Inputs,
                    .offload = settings.offload}};
}

/// Whose initial weights count, as parallel.sync_module_states, cpu_ram_efficient_loading and
/// checkpoint.broadcast_from_rank0 say.
FilledBy filled_by(const config::Config& config) {
  const bool is_read = !config.model.init_from.empty();
  const bool reads_alone = config.parallel.cpu_ram_efficient_loading || config.checkpoint.broadcast_from_rank0;
  const bool by_rank_0 = config.parallel.sync_module_states || (is_read && reads_alone);
  return by_rank_0 ? FilledBy::Rank0 : FilledBy::EachRank;
}

LossScale loss_scale_of(const config::Training& training) {
  using Kind = optim::LossScaling::Kind;
  const auto constant = config::constant_loss_scale(training);
  return {.is_automatic = training.loss_scale == "auto",
          .scaling = {.kind = constant ? Kind::Constant : Kind::None,
                      .init_scale = constant.value_or(training.loss_scale_init),
                      .growth_factor = training.loss_scale_growth_factor,
                      .backoff_factor = training.loss_scale_backoff_factor,
                      .growth_interval = training.loss_scale_growth_interval}};
}

std::vector<MemoryKind> kinds_on_host(const config::Config& config, Device device) {
  using enum MemoryKind;
  if (device.kind == DeviceKind::Cpu) return {};
  if (config.parallel.offload) return {Offloaded, Parameters, Gradients, Optimizer};
  return {Offloaded};
}

RunSpec resolve(const config::Loaded& loaded, const MeshSize& mesh, Device device) {
  const config::Config& config = loaded.config;
  const config::Training& training = config.training;
  const int64_t held_out_rows = config.validation.batch_size > 0 ? config.validation.batch_size : training.batch_size;
  return {.strategy = strategy_word_of(config.parallel.strategy),
          .sharding = sharding_of(config, mesh, device),
          .recompute = recompute_of(config.activation_checkpointing),
          .filled_by = filled_by(config),
          .loss_scale = loss_scale_of(training),
          .batch = {training.batch_size, training.sequence_length, training.accumulation_steps},
          .held_out = {held_out_rows, training.sequence_length, 1},
          .on_host = kinds_on_host(config, device)};
}

}  // namespace

RunSpec resolve(const config::Loaded& loaded, const Ranks& ranks, Device device) {
  return resolve(loaded, mesh_of(loaded, ranks), device);
}

RunSpec resolve(const config::Loaded& loaded, const World& world) {
  return resolve(loaded, mesh_of(loaded, world), world.device);
}

optim::LossScaling loss_scaling_of(const LossScale& wanted, const shard::Engine& engine) {
  optim::LossScaling scaling = wanted.scaling;
  const bool uses_float16 =
      std::ranges::any_of(engine.groups(), [](const auto& group) { return shard::uses_float16(group->precision()); });
  if (wanted.is_automatic && uses_float16) scaling.kind = optim::LossScaling::Kind::Dynamic;
  return scaling;
}

}  // namespace trainyard::train
