#include "train/snapshot.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "assemble/model_config.h"
#include "base/error.h"
#include "base/text.h"
#include "checkpoint/open_weights.h"
#include "ops/cast.h"
#include "train/gather.h"

namespace trainyard::train {
namespace {

using nlohmann::json;

constexpr const char* kModelOnly = "model_only";
constexpr const char* kLoader = "loader";
constexpr const char* kStarted = "optimizer_started";
constexpr const char *kFirst = "adam.m.", *kSecond = "adam.v.";
constexpr const char *kScaler = "loss_scaler", *kScale = "scale", *kGrowthTracker = "growth_tracker";

/// What others follow from goes first: with a layer less max_window_layers differs too, which nobody has set.
constexpr std::pair<const char*, const char*> kSizes[] = {{"num_hidden_layers", "model.layers"},
                                                          {"hidden_size", "model.hidden_size"},
                                                          {"intermediate_size", "model.intermediate_size"},
                                                          {"num_attention_heads", "model.heads"},
                                                          {"num_key_value_heads", "model.kv_heads"},
                                                          {"vocab_size", "model.vocab_size"}};

checkpoint::Shard shard_of(const std::string& prefix, const shard::ParameterShard& shard, const Tensor& local) {
  const autograd::Part& part = shard.parameter->part();
  const bool splits_columns = part.dimension == 1;
  return {.name = prefix + shard.parameter->name(),
          .global_shape = shard.parameter->whole_shape(),
          .row_offset = shard.rows.begin + (splits_columns ? 0 : part.begin),
          .local = local,
          .column_offset = splits_columns ? part.begin : 0,
          .written = shard.counted};
}

/// All but a base, which is in the weights that the run began with.
std::vector<checkpoint::Shard> parameters_of(const shard::Engine& engine) {
  std::vector<checkpoint::Shard> shards;
  for (const shard::ParameterShard& shard : engine.shards())
    if (!shard.parameter->is_base()) shards.push_back(shard_of("", shard, shard.value));
  return shards;
}

std::vector<checkpoint::Shard> moments_of(optim::AdamW& optimizer) {
  std::vector<checkpoint::Shard> shards;
  for (const optim::AdamW::Moments& moments : optimizer.moments()) {
    shards.push_back(shard_of(kFirst, *moments.shard, moments.first));
    shards.push_back(shard_of(kSecond, *moments.shard, moments.second));
  }
  return shards;
}

/// {parameter: steps that the optimizer had done when it was first trained}, of those that were frozen before.
json started_of(optim::AdamW& optimizer) {
  json started = json::object();
  for (const optim::AdamW::Moments& moments : optimizer.moments())
    if (moments.started > 0) started[moments.shard->parameter->name()] = moments.started;
  return started;
}

int64_t whole_number(const checkpoint::Checkpoint& checkpoint, const char* key) {
  const auto found = checkpoint.state().find(key);
  if (found == checkpoint.state().end() || !found->is_number_integer())
    throw InputError(fmt::format("{}: the state has no whole number '{}': not a checkpoint of a training run",
                                 checkpoint.path().string(), key));
  return found->get<int64_t>();
}

/// Moments that were saved in another type are converted.
void read_moment(const checkpoint::Checkpoint& checkpoint, checkpoint::Shard shard) {
  const DType saved = checkpoint.tensor(shard.name).dtype;
  if (saved == shard.local.dtype() || !is_floating(saved)) return checkpoint.read_into(shard);
  Tensor moment = std::exchange(shard.local, Tensor::empty(shard.local.shape(), saved, shard.local.device()));
  checkpoint.read_into(shard);
  ops::cast(shard.local, moment);
}

/// The moments of what the checkpoint trained. Those of a parameter that was frozen when it was saved begin at zero
/// with a bias correction of their own, as torch.optim begins the state of a parameter that it has never stepped. Gives
/// the names of these.
std::vector<std::string> restore_optimizer(optim::AdamW& optimizer, const checkpoint::Checkpoint& checkpoint) {
  const int64_t steps = whole_number(checkpoint, "optimizer_steps");
  const json started = checkpoint.state().value(kStarted, json::object());
  std::vector<std::string> fresh;
  for (optim::AdamW::Moments& moments : optimizer.moments()) {
    const std::string& name = moments.shard->parameter->name();
    if (!checkpoint.has(kFirst + name) && !checkpoint.has(kSecond + name)) {
      moments.started = steps;
      fresh.push_back(name);
      continue;
    }
    moments.started = started.value(name, int64_t{0});
    read_moment(checkpoint, shard_of(kFirst, *moments.shard, moments.first));
    read_moment(checkpoint, shard_of(kSecond, *moments.shard, moments.second));
  }
  optimizer.set_steps_done(steps);
  return fresh;
}

/// A run that did not scale its loss left nothing: then the scale begins as in a fresh run.
void restore_scaler(optim::LossScaler& scaler, const checkpoint::Checkpoint& checkpoint) {
  const auto found = checkpoint.state().find(kScaler);
  if (found == checkpoint.state().end()) return;
  const json state = found->is_object() ? *found : json::object();
  const json scale = state.value(kScale, json()), tracker = state.value(kGrowthTracker, json());
  if (!scale.is_number() || scale <= 0 || !tracker.is_number_integer())
    throw InputError(
        fmt::format("{}: the state's {} is {}, without a {} above 0 and a {}: not a checkpoint of a training run",
                    checkpoint.path().string(), kScaler, found->dump(), kScale, kGrowthTracker));
  scaler.load_state({scale.get<double>(), tracker.get<int64_t>()});
}

void restore_loader(data::Loader& loader, const checkpoint::Checkpoint& checkpoint) {
  const auto found = checkpoint.state().find(kLoader);
  if (found == checkpoint.state().end())
    throw InputError(fmt::format("{}: holds no place in the data, as a program with the library saved it; "
                                 "--checkpoint.exclude data begins the data anew",
                                 checkpoint.path().string()));
  loader.load_state(*found);
}

void warn_of_fresh(const std::vector<std::string>& names, const checkpoint::Checkpoint& checkpoint) {
  if (names.empty()) return;
  spdlog::warn("{}: holds no optimizer state of {}{}, frozen when it was saved; the moments begin at zero",
               checkpoint.path().string(), names.front(),
               names.size() == 1 ? "" : fmt::format(" and {} more parameters", names.size() - 1));
}

/// Shapes alone do not tell: fewer layers find all their tensors, other heads the same rows.
void require_same_model(const checkpoint::Checkpoint& checkpoint, const models::ModelConfig& model,
                        const std::string& instead) {
  const json ours = json::parse(models::to_hugging_face(model));
  const json saved = json::parse(models::to_hugging_face(model_config_of(checkpoint)));
  const auto require_same = [&](const std::string& name, const std::string& shown) {
    const json here = ours.value(name, json()), there = saved.value(name, json());
    if (here == there) return;
    throw InputError(fmt::format("{}: a checkpoint of another model: {} is {} there and {} in this run; {}",
                                 checkpoint.path().string(), shown, there.dump(), here.dump(), instead));
  };
  require_same("model_type", "model_type");
  for (const auto& [name, key] : kSizes) require_same(name, fmt::format("{} ({})", name, key));
  // The padding of a decoder counts only backward, and older checkpoints do not record it.
  const auto changes_nothing = [&](const std::string& name) {
    return name == "initializer_range" || name == "max_position_embeddings" ||
           (name == "pad_token_id" && model.pad_token_id);
  };
  for (const auto& [name, value] : ours.items())
    if (!changes_nothing(name)) require_same(name, name);
}

/// What a checkpoint holds follows from these.
void require_same_adapters(const checkpoint::Checkpoint& checkpoint, const Adapters* adapters) {
  const auto saved = checkpoint.state().find(checkpoint::kAdapter);
  const std::string where = checkpoint.path().string();
  if (saved == checkpoint.state().end() && adapters)
    throw InputError(fmt::format(
        "{}: is a checkpoint of a whole model, and this run trains adapters (lora.rank); begin from it with "
        "model.init_from, in another checkpoint.dir",
        where));
  if (saved == checkpoint.state().end()) return;
  if (!adapters)
    throw InputError(
        fmt::format("{}: holds adapters (LoRA) alone, and this run trains a whole model; set lora.rank to {}", where,
                    saved->value("r", json()).dump()));
  const auto require_same = [&](const char* member, const char* key, const json& ours) {
    if (const json theirs = saved->value(member, json()); theirs != ours)
      throw InputError(
          fmt::format("{}: has adapters with {} {}, and this run has {}; give it that, or another checkpoint.dir",
                      where, key, theirs.dump(), ours.dump()));
  };
  require_same("r", "lora.rank", adapters->lora().rank);
  require_same("lora_alpha", "lora.alpha", adapters->lora().alpha);
  require_same("target_modules", "lora.target_modules", adapters->lora().target_modules);
}

}  // namespace

checkpoint::Snapshot snapshot_of(const shard::Engine& engine, optim::AdamW& optimizer, const Progress& progress,
                                 const std::string& config_json) {
  return {.step = progress.step,
          .holders = engine.mesh().holders(),
          .model = parameters_of(engine),
          .optimizer = moments_of(optimizer),
          .state = {{"tokens", progress.tokens},
                    {"optimizer_steps", optimizer.steps_done()},
                    {kStarted, started_of(optimizer)},
                    {"config_json", config_json}}};
}

checkpoint::Snapshot snapshot_of(const Parts& parts, const Progress& progress, const Description& description) {
  checkpoint::Snapshot snapshot = snapshot_of(parts.engine, parts.optimizer, progress, description.config_json);
  snapshot.state[kLoader] = parts.loader.state();
  snapshot.state["tokenizer"] = description.tokenizer;
  snapshot.state["configuration"] = description.configuration;
  if (parts.adapters)
    snapshot.state[checkpoint::kAdapter] =
        to_peft(parts.adapters->lora(), parts.model.config(), description.weights.string());
  snapshot.files = description.files;
  const optim::LossScaler::State& scaling = parts.scaler.state();
  if (parts.scaler.is_on())
    snapshot.state[kScaler] = {{kScale, scaling.scale}, {kGrowthTracker, scaling.growth_tracker}};
  return snapshot;
}

Tensor gather_whole(const shard::Engine& engine, const checkpoint::Shard& shard) {
  const auto is_of = [&shard](const shard::ParameterShard& each) {
    const std::string& name = each.parameter->name();
    return shard.name == name || shard.name == kFirst + name || shard.name == kSecond + name;
  };
  const auto found = std::ranges::find_if(engine.shards(), is_of);
  if (found == engine.shards().end()) throw std::invalid_argument("gather_whole: no parameter has " + shard.name);
  return gather_whole(engine.mesh(), *found->parameter, shard.local, shard.name);
}

Excluded excluded_of(const std::string& words) {
  Excluded excluded;
  for (const std::string& word : split(words, ',')) {
    if (trim(word) == "optimizer") excluded.optimizer = true;
    if (trim(word) == "data") excluded.data = true;
    if (trim(word) == "progress") excluded.progress = true;
  }
  return excluded;
}

Progress restore(shard::Engine& engine, optim::AdamW& optimizer, const checkpoint::Checkpoint& checkpoint,
                 const models::ModelConfig& model) {
  require_same_model(checkpoint, model, "give the model of the checkpoint");
  fill_from_checkpoint(engine, checkpoint);
  restore_optimizer(optimizer, checkpoint);
  return {checkpoint.step(), whole_number(checkpoint, "tokens")};
}

Progress restore(Parts& parts, const checkpoint::Checkpoint& checkpoint, const models::ModelConfig& model,
                 const Excluded& excluded, const std::string& instead) {
  require_same_model(checkpoint, model, instead);
  require_same_adapters(checkpoint, parts.adapters);
  fill_from_checkpoint(parts.engine, checkpoint);
  if (!excluded.optimizer && !is_model_only(checkpoint)) {
    const std::vector<std::string> fresh = restore_optimizer(parts.optimizer, checkpoint);
    restore_scaler(parts.scaler, checkpoint);
    if (parts.world.rank() == 0) warn_of_fresh(fresh, checkpoint);
  }
  if (!excluded.data) restore_loader(parts.loader, checkpoint);
  if (excluded.progress) return {};
  return {checkpoint.step(), whole_number(checkpoint, "tokens")};
}

checkpoint::Snapshot model_only(checkpoint::Snapshot snapshot) {
  snapshot.optimizer.clear();
  snapshot.state[kModelOnly] = true;
  return snapshot;
}

bool is_model_only(const checkpoint::Checkpoint& checkpoint) {
  return checkpoint.state().value(kModelOnly, false);
}

void fill_from_checkpoint(shard::Engine& engine, const checkpoint::Checkpoint& checkpoint) {
  for (checkpoint::Shard& shard : parameters_of(engine)) checkpoint.read_into(shard);
}

}  // namespace trainyard::train
