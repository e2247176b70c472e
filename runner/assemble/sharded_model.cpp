#include "assemble/sharded_model.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "assemble/exchange.h"
#include "assemble/stored_weights.h"
#include "base/error.h"
#include "base/text.h"
#include "checkpoint/adapter.h"
#include "checkpoint/files_beside.h"
#include "models/family.h"
#include "models/language_model.h"
#include "nn/init.h"

namespace trainyard::train {

namespace {

void freeze(const nn::Module& model, const std::vector<std::string>& globs) {
  const std::vector<autograd::Parameter*> parameters = model.parameters();
  for (const std::string& glob : globs) {
    size_t matches = 0;
    for (autograd::Parameter* const parameter : parameters) {
      if (::fnmatch(glob.c_str(), parameter->name().c_str(), 0) != 0) continue;
      parameter->freeze();
      ++matches;
    }
    if (matches == 0)
      throw InputError(fmt::format("training.freeze: '{}' matches no parameter of this model; its first is {}", glob,
                                   parameters.front()->name()));
  }
  if (std::ranges::all_of(parameters, [](const autograd::Parameter* each) { return each->is_frozen(); }))
    throw InputError("training.freeze: every parameter is frozen, so there is nothing to train; name fewer");
}

std::string group_name(const nn::Module& module) {
  return module.name().empty() ? "root" : module.name();
}

bool matches(const PrecisionRule& rule, const std::string& name) {
  return ::fnmatch(rule.pattern.c_str(), name.c_str(), 0) == 0;
}

shard::MixedPrecision precision_of(const nn::Module& module, const Sharding& sharding) {
  const auto& rules = sharding.precision;
  const auto rule = std::find_if(rules.rbegin(), rules.rend(),
                                 [&](const PrecisionRule& each) { return matches(each, group_name(module)); });
  return rule == rules.rend() ? sharding.policy.precision : rule->precision;
}

void require_matches(const std::vector<PrecisionRule>& rules, const std::vector<std::string>& names) {
  for (const PrecisionRule& rule : rules)
    if (std::ranges::none_of(names, [&](const std::string& name) { return matches(rule, name); }))
      throw InputError(fmt::format("parallel.precision: '{}' matches no group of this model; they are {}", rule.pattern,
                                   shortened(names)));
}

void fill(shard::Engine& engine, const shard::Engine::Source& source, FilledBy by) {
  by == FilledBy::Rank0 ? engine.fill_from_rank_0(source) : engine.fill(source);
}

/// Whose forward is in their order, as a group of several modules takes for granted; inside a block it is another.
bool are_blocks(const Groups& groups, const std::vector<nn::Module*>& blocks) {
  return std::ranges::all_of(
      groups, [&](const auto& modules) { return std::ranges::find(blocks, modules.front()) != blocks.end(); });
}

}  // namespace

namespace {

/// Puts context parallelism in the place of the model's attention.
void split_rows(models::Model& model, const shard::Mesh& mesh, const Sharding& sharding) {
  auto* const language = dynamic_cast<models::LanguageModel*>(&model);
  if (!language || !language->can_split_rows())
    throw InputError(fmt::format("parallel.context is {}, but a {} model has no context dimension; use 1",
                                 sharding.mesh.context, model.config().family));
  const int64_t heads = model.config().heads / sharding.mesh.tensor;
  if (sharding.context.method == context_parallel::Method::Ulysses && heads % sharding.mesh.context != 0)
    throw InputError(
        fmt::format("parallel.context is {}, but ulysses splits the {} heads {} among those ranks; use a "
                    "divisor of {}, or ring or all_gather as parallel.context_method",
                    sharding.mesh.context, heads,
                    sharding.mesh.tensor > 1 ? "that a rank of parallel.tensor has" : "of the model", heads));
  language->split_rows(context_parallel::make_attention(mesh.of(shard::Dimension::Context), sharding.context.method,
                                                        row_parts_of(sharding.mesh, sharding.context)));
}

/// Puts tensor parallelism around the model.
void split_layers(models::Model& model, const shard::Mesh& mesh, const Sharding& sharding) {
  const models::ModelConfig& config = model.config();
  const int tensor = sharding.mesh.tensor;
  const nn::Placements& placements = models::family_of(config).placements;
  if (placements.empty())
    throw InputError(
        fmt::format("parallel.tensor is {}, but a {} model has no tensor dimension; use 1", tensor, config.family));
  if (config.heads % tensor != 0)
    throw InputError(
        fmt::format("parallel.tensor is {}, but the model has {} heads, which are split among those ranks; "
                    "use a divisor of {}",
                    tensor, config.heads, config.heads));
  comm::Communicator& ranks = mesh.of(shard::Dimension::Tensor);
  tensor_parallel::parallelize(model, placements, {config.heads, config.kv_heads, config.head_dim}, ranks,
                               sharding.tensor);
  models::language_model(model).set_output_head(
      tensor_parallel::make_output_head(ranks, config.vocab_size, sharding.tensor));
}

}  // namespace

ShardedModel shard_model(const models::ModelConfig& config, comm::Communicator& world, const Sharding& sharding) {
  ShardedModel made{models::build(config), std::make_shared<shard::Mesh>(world, sharding.mesh), nullptr};
  if (sharding.mesh.tensor > 1) split_layers(*made.model, *made.mesh, sharding);
  if (sharding.mesh.context > 1) split_rows(*made.model, *made.mesh, sharding);
  if (sharding.lora) made.adapters.emplace(*made.model, *sharding.lora);
  freeze(*made.model, sharding.freeze);
  if (sharding.float8) made.float8 = convert_to_float8(*made.model, *sharding.float8);
  made.engine = std::make_unique<shard::Engine>(*made.mesh, sharding.policy);
  Groups groups = groups_of(*made.model, made.model->blocks(), sharding.wrap);
  std::vector<std::string> names;
  for (const auto& modules : groups) names.push_back(group_name(*modules.front()));
  const bool only_sums = sharding.mesh.of(shard::Dimension::Shard) == 1 && sharding.mesh.world() > 1;
  if (only_sums && are_blocks(groups, made.model->blocks()))
    groups = in_buckets(groups, sharding.policy.bucket_bytes, [&](const nn::Module& a, const nn::Module& b) {
      return precision_of(a, sharding) == precision_of(b, sharding);
    });
  for (const auto& modules : groups) made.engine->fully_shard(modules, {precision_of(*modules.front(), sharding)});
  made.engine->fully_shard(*made.model, {precision_of(*made.model, sharding)});
  if (made.engine->root()) names.push_back(group_name(*made.model));
  require_matches(sharding.precision, names);
  return made;
}

void fill_random(shard::Engine& engine, uint64_t seed, FilledBy by) {
  fill(
      engine,
      [seed](const autograd::Parameter& parameter, Rows rows, std::span<float> out) {
        nn::initial_rows(parameter, seed, rows.begin, rows.count, out);
      },
      by);
}

namespace {

void require_fit(const checkpoint::Weights& weights, const autograd::Parameter& parameter) {
  const std::string& name = parameter.name();
  const Shape &stored = weights.shape(name), &wanted = parameter.whole_shape();
  if (stored != wanted)
    throw InputError(fmt::format(
        "{}: {} is {}, but config.json makes it {}{}", weights.path_of(name).string(), name, to_string(stored),
        to_string(wanted), weights.may_lack_rows() && stored[0] < wanted[0] ? "; is the file of a rank missing?" : ""));
  static_cast<void>(weights.read_rows(name, 0, 0));  // throws for a type that is no floating point
}

/// transformers would load it onto the weights, where peft is installed.
void refuse_adapter(const std::filesystem::path& weights) {
  const auto file = checkpoint::model_folder_of(weights) / "adapter_config.json";
  if (std::filesystem::exists(file))
    throw InputError(fmt::format("{}: the adapter (LoRA) beside the weights is not read; merge it into them first, as "
                                 "peft's merge_and_unload does, or take it out",
                                 file.string()));
}

void warn_of_unread(const models::ModelConfig& config, const checkpoint::Weights& weights) {
  const auto without_adapters = models::build(config);
  const std::vector<std::string> names = unread_by(*without_adapters, weights);
  if (names.empty()) return;
  spdlog::warn("{}: a {} model here does not read {}: it is as if they were not there",
               weights.path_of(names.front()).string(), config.family, shortened(names));
}

}  // namespace

void fill_from_weights(const ShardedModel& sharded, const StoredWeights& stored, FilledBy by) {
  const auto is_stored = [&](const autograd::Parameter& parameter) { return !sharded.adapters || parameter.is_base(); };
  comm::Communicator& world = sharded.mesh->world();
  const bool is_alone = by == FilledBy::Rank0;  // in reading
  std::unique_ptr<checkpoint::Weights> weights;
  std::optional<checkpoint::StoredAdapter> start;  // of the adapters
  const auto open = [&] {
    weights = open_weights(stored.path, stored.name_map, sharded.model->config());
    for (const autograd::Parameter* const parameter : sharded.model->parameters())
      if (is_stored(*parameter)) require_fit(*weights, *parameter);
    refuse_adapter(stored.path);
    if (!stored.adapter.empty()) start = open_start(stored.adapter, *sharded.adapters, *sharded.model);
    if (world.rank() == 0) warn_of_unread(sharded.model->config(), *weights);
    for (const checkpoint::Weights* const read : {weights.get(), start ? start->tensors.get() : nullptr}) {
      if (!read) continue;
      if (const auto damage = read->find_damage(is_alone ? 0 : world.rank(), is_alone ? 1 : world.world()))
        throw InputError("damaged: " + *damage);
    }
  };
  is_alone ? on_rank_0(world, open) : on_every_rank(world, open);
  const auto read = [&](const autograd::Parameter& parameter, Rows rows, std::span<float> out) {
    if (!is_stored(parameter) && !start) return nn::initial_rows(parameter, stored.seed, rows.begin, rows.count, out);
    const bool is_adapter = !is_stored(parameter);
    const checkpoint::Weights& from = is_adapter ? *start->tensors : *weights;
    const std::string name = is_adapter ? stored_name(*start, parameter.name()) : parameter.name();
    const Tensor values = from.read_rows(name, rows.begin, rows.count);
    std::ranges::copy(values.values<float>(), out.begin());
  };
  fill(*sharded.engine, read, by);
}

}  // namespace trainyard::train
