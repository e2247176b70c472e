#include "train/sharded_model.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/weights.h"
#include "nn/init.h"
#include "train/exchange.h"

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

std::string shortened(std::vector<std::string> names) {
  constexpr std::ptrdiff_t kShown = 8;
  if (std::ssize(names) > kShown) {
    names.erase(names.begin() + kShown / 2, names.end() - kShown / 2);
    names.insert(names.begin() + kShown / 2, "…");
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

ShardedModel shard_model(const models::ModelConfig& config, comm::Communicator& world, const Sharding& sharding) {
  ShardedModel made{models::build(config), std::make_unique<shard::Mesh>(world, sharding.mesh), nullptr};
  freeze(*made.model, sharding.freeze);
  if (sharding.float8) made.float8 = convert_to_float8(*made.model, *sharding.float8);
  made.engine = std::make_unique<shard::Engine>(*made.mesh, sharding.policy);
  Groups groups = groups_of(*made.model, made.model->blocks(), sharding.wrap);
  std::vector<std::string> names;
  for (const auto& modules : groups) names.push_back(group_name(*modules.front()));
  const bool only_sums = sharding.mesh.shard == 1 && sharding.mesh.replicate > 1;
  if (only_sums && are_blocks(groups, made.model->blocks()))
    groups = in_buckets(groups, sharding.policy.bucket_bytes, [&](const nn::Module& a, const nn::Module& b) {
      return precision_of(a, sharding) == precision_of(b, sharding);
    });
  for (const auto& modules : groups) made.engine->fully_shard(modules, precision_of(*modules.front(), sharding));
  made.engine->fully_shard(*made.model, precision_of(*made.model, sharding));
  if (made.engine->root()) names.push_back(group_name(*made.model));
  require_matches(sharding.precision, names);
  return made;
}

std::vector<checkpoint::Wanted> wanted_by(const models::ModelConfig& config) {
  std::vector<checkpoint::Wanted> wanted;
  const auto model = models::build(config);
  for (const autograd::Parameter* const parameter : model->parameters())
    wanted.push_back({parameter->name(), parameter->shape()});
  return wanted;
}

void fill_random(shard::Engine& engine, uint64_t seed, FilledBy by) {
  fill(
      engine,
      [seed](const autograd::Parameter& parameter, shard::Rows rows, std::span<float> out) {
        nn::initial_rows(parameter, seed, rows.begin, rows.count, out);
      },
      by);
}

namespace {

/// Part of a model would train without a word. What no layer is (a stored copy of a tied head) may be left over.
void refuse_more_blocks(const checkpoint::Weights& weights, models::Model& model) {
  std::map<std::string, int64_t> counts;  // of a stack's blocks, by what its names begin with: "model.layers."
  for (const nn::Module* const block : model.blocks()) ++counts[block->name().substr(0, block->name().rfind('.') + 1)];
  for (const std::string& name : weights.names())
    for (const auto& [stack, count] : counts) {
      if (!name.starts_with(stack)) continue;
      const auto number = parse_int(name.substr(stack.size(), name.find('.', stack.size()) - stack.size()));
      if (number && *number >= count)
        throw InputError(fmt::format("{}: holds {}, but the last of these that config.json makes is {}{}",
                                     weights.path_of(name).string(), name, stack, count - 1));
    }
}

void require_fit(const checkpoint::Weights& weights, const autograd::Parameter& parameter) {
  const std::string& name = parameter.name();
  const Shape &stored = weights.shape(name), &wanted = parameter.shape();
  if (stored != wanted)
    throw InputError(fmt::format(
        "{}: {} is {}, but config.json makes it {}{}", weights.path_of(name).string(), name, to_string(stored),
        to_string(wanted), weights.may_lack_rows() && stored[0] < wanted[0] ? "; is the file of a rank missing?" : ""));
  static_cast<void>(weights.read_rows(name, 0, 0));  // throws for a type that is no floating point
}

std::unique_ptr<checkpoint::Weights> open_weights_of(const ShardedModel& sharded, const std::filesystem::path& path,
                                                     const std::filesystem::path& name_map) {
  auto weights = checkpoint::open_weights(path);
  if (name_map.empty()) return weights;
  return checkpoint::mapped(std::move(weights), checkpoint::NameMap(name_map), wanted_by(sharded.model->config()));
}

}  // namespace

void fill_from_weights(const ShardedModel& sharded, const std::filesystem::path& path, FilledBy by,
                       const std::filesystem::path& name_map) {
  comm::Communicator& world = sharded.mesh->world();
  const bool is_alone = by == FilledBy::Rank0;  // in reading
  std::unique_ptr<checkpoint::Weights> weights;
  const auto open = [&] {
    weights = open_weights_of(sharded, path, name_map);
    refuse_more_blocks(*weights, *sharded.model);
    for (const autograd::Parameter* const parameter : sharded.model->parameters()) require_fit(*weights, *parameter);
    if (const auto damage = weights->find_damage(is_alone ? 0 : world.rank(), is_alone ? 1 : world.world()))
      throw InputError("damaged: " + *damage);
  };
  is_alone ? on_rank_0(world, open) : on_every_rank(world, open);
  const auto read = [&](const autograd::Parameter& parameter, shard::Rows rows, std::span<float> out) {
    const Tensor values = weights->read_rows(parameter.name(), rows.begin, rows.count);
    std::ranges::copy(values.values<float>(), out.begin());
  };
  fill(*sharded.engine, read, by);
}

}  // namespace trainyard::train
