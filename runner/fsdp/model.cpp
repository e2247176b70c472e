#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "assemble/exchange.h"
#include "base/error.h"
#include "base/files.h"
#include "fsdp/state.h"
#include "train/gather.h"

namespace trainyard::fsdp {
namespace {

void collect(nn::Module& module, std::vector<nn::Module*>& all) {
  all.push_back(&module);
  for (nn::Module* const child : module.children()) collect(*child, all);
}

std::shared_ptr<ModelState> state_of(const models::ModelConfig& config, uint64_t seed) {
  auto state = std::make_shared<ModelState>();
  state->model = models::build(config);
  state->parameters = state->model->parameters();
  state->seed = seed;
  collect(*state->model, state->modules);
  return state;
}

std::vector<float> floats_of(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

/// The next token of each row; nothing follows the last.
std::vector<int32_t> next_of(const Batch& batch) {
  std::vector<int32_t> targets(batch.input_ids.size(), data::kIgnored);
  for (size_t i = 0; i + 1 < targets.size(); ++i)
    if ((i + 1) % static_cast<size_t>(batch.tokens) != 0) targets[i] = batch.input_ids[i + 1];
  return targets;
}

void require_size(const char* what, const std::vector<int32_t>& ids, const Batch& batch) {
  if (batch.rows < 0 || batch.tokens < 1 || std::ssize(ids) != batch.rows * batch.tokens)
    throw std::invalid_argument(
        fmt::format("Batch: {} rows of {} tokens, but {} {}", batch.rows, batch.tokens, ids.size(), what));
}

void require_ids(const Batch& batch, int64_t vocab) {
  for (const int32_t id : batch.input_ids)
    if (id < 0 || id >= vocab)
      throw std::invalid_argument(fmt::format("Batch: token id {}; the model knows 0 to {}", id, vocab - 1));
}

data::Batch internal(const Batch& batch, const ModelState& state) {
  require_size("input_ids", batch.input_ids, batch);
  require_ids(batch, state.model->config().vocab_size);
  const std::vector<int32_t> targets = batch.targets.empty() ? next_of(batch) : batch.targets;
  require_size("targets", targets, batch);
  data::Batch made;
  made.input_ids = Tensor::from<int32_t>(batch.input_ids, {batch.rows, batch.tokens});
  made.targets = Tensor::from<int32_t>(targets, {batch.rows, batch.tokens});
  made.valid_tokens = data::count_valid(made.targets);
  const comm::Communicator& world = state.layout->ranks.comm;
  for (int64_t row = 0; row < batch.rows; ++row)  // masks of dropout are keyed by these
    made.sequences.push_back((state.passes * world.world() + world.rank()) * batch.rows + row);
  return made;
}

}  // namespace

void ModelState::require_complete(const char* who) const {
  if (!is_complete)
    throw std::logic_error(fmt::format("{}: the model has no weights yet; call fully_shard() on the model itself", who));
}

shard::Group& ModelState::group_of(std::size_t module, const char* who) const {
  require_complete(who);
  shard::Group* const group = engine->group_of(*modules.at(module));
  if (!group)
    throw std::logic_error(
        fmt::format("{}: fully_shard() was not called on module '{}'", who, modules.at(module)->name()));
  return *group;
}

const shard::ParameterShard* ModelState::shard_of(const autograd::Parameter& parameter) const {
  if (!engine) return nullptr;
  for (const shard::ParameterShard& shard : engine->shards())
    if (shard.parameter == &parameter) return &shard;
  return nullptr;
}

shard::Group* ModelState::group_with(const autograd::Parameter& parameter) const {
  for (const auto& group : engine->groups())
    for (const shard::Piece& piece : group->layout().pieces)
      if (piece.parameter == &parameter) return group.get();
  return nullptr;
}

size_t ModelState::number_of(const nn::Module& module) const {
  return static_cast<size_t>(std::ranges::find(modules, &module) - modules.begin());
}

void ModelState::reshard_all() const {
  for (const auto& group : engine->groups())
    if (!group->is_sharded()) engine->reshard(*group);
}

std::string Module::name() const {
  return model_->modules.at(number_)->name();
}

std::vector<Module> Module::children() const {
  std::vector<Module> all;
  for (const nn::Module* const child : model_->modules.at(number_)->children())
    all.emplace_back(model_, model_->number_of(*child));
  return all;
}

namespace {

std::vector<Parameter> handles(const std::shared_ptr<ModelState>& model,
                               const std::vector<autograd::Parameter*>& parameters) {
  std::vector<Parameter> all;
  for (autograd::Parameter* const each : parameters) {
    const auto found = std::ranges::find(model->parameters, each);
    all.emplace_back(model, static_cast<size_t>(found - model->parameters.begin()));
  }
  return all;
}

}  // namespace

std::vector<Parameter> Module::parameters() const {
  return handles(model_, model_->modules.at(number_)->parameters());
}

std::vector<Parameter> Module::managed_parameters() const {
  std::vector<autograd::Parameter*> own;
  for (const shard::Piece& piece : model_->group_of(number_, "managed_parameters").layout().pieces)
    own.push_back(piece.parameter);
  return handles(model_, own);
}

void Module::unshard() {
  shard::Group& group = model_->group_of(number_, "unshard");  // throws where no engine is there yet
  model_->engine->unshard(group);
}

void Module::unshard_async() {
  shard::Group& group = model_->group_of(number_, "unshard_async");
  model_->engine->begin_unshard(group);
}

void Module::reshard() {
  shard::Group& group = model_->group_of(number_, "reshard");
  if (!group.is_sharded()) model_->engine->reshard(group);
}

namespace {

std::vector<shard::Group*> groups_of(const ModelState& model, const std::vector<Module>& modules, const char* who) {
  std::vector<shard::Group*> groups;
  for (const Module& module : modules) {
    if (module.state().get() != &model) throw std::logic_error(fmt::format("{}: a module of another model", who));
    groups.push_back(&model.group_of(module.number(), who));
  }
  return groups;
}

}  // namespace

void Module::set_modules_to_forward_prefetch(const std::vector<Module>& modules) {
  const char* const who = "set_modules_to_forward_prefetch";
  const shard::Group& group = model_->group_of(number_, who);
  model_->engine->set_forward_prefetch(group, groups_of(*model_, modules, who));
}

void Module::set_modules_to_backward_prefetch(const std::vector<Module>& modules) {
  const char* const who = "set_modules_to_backward_prefetch";
  const shard::Group& group = model_->group_of(number_, who);
  model_->engine->set_backward_prefetch(group, groups_of(*model_, modules, who));
}

Model Model::preset(const std::string& name, std::uint64_t seed) {
  return {state_of(models::preset(name), seed), 0};
}

Model Model::from_config(const std::string& path, std::uint64_t seed) {
  const std::string text = read_file(path);
  const auto state = state_of(models::for_training(models::parse_config(text, path)), seed);
  state->given_config_json = text;
  return {state, 0};
}

std::vector<Module> Model::layers() const {
  std::vector<Module> all;
  for (const nn::Module* const block : state()->model->blocks()) all.emplace_back(state(), state()->number_of(*block));
  return all;
}

void Model::set_requires_gradient_sync(bool is_required) {
  state()->requires_sync = is_required;
}

struct Loss::State {
  std::shared_ptr<ModelState> model;
  std::unique_ptr<nn::Tape> tape;  ///< null: backward() has been called
  double sum = 0, weight = 0;      ///< of this rank, of all ranks
};

Loss::Loss(std::unique_ptr<State> state) : state_(std::move(state)) {}
Loss::~Loss() = default;
Loss::Loss(Loss&&) noexcept = default;
Loss& Loss::operator=(Loss&&) noexcept = default;

double Loss::item() {
  ProcessGroup ranks(state_->model->layout->ranks);
  return ranks.all_reduce(state_->sum) / state_->weight;
}

void Loss::backward() {
  if (!state_->tape) throw std::logic_error("Loss::backward: it has been called already");
  state_->tape->backward();
  state_->tape.reset();
  state_->model->engine->finish_backward();
}

namespace {

/// What all ranks' losses are divided by.
double weight_of(const ModelState& state, const data::Batch& batch) {
  ProcessGroup ranks(state.layout->ranks);
  const double weight = ranks.all_reduce(state.model->loss_weight(batch));
  if (weight == 0) throw std::invalid_argument("Model::loss: no rank has a target");
  return weight;
}

/// A bad batch of one rank is every rank's error: the others would wait for it.
data::Batch batch_on_every_rank(ModelState& state, const Batch& batch, const char* who) {
  state.require_complete(who);
  return train::made_on_every_rank(state.layout->ranks.comm, [&] {
    try {
      return internal(batch, state);
    } catch (const std::invalid_argument& wrong) {
      throw InputError(wrong.what());
    }
  });
}

}  // namespace

Loss Model::loss(const Batch& batch, double scale) {
  ModelState& of = *state();
  const data::Batch made = batch_on_every_rank(of, batch, "Model::loss");
  auto loss = std::make_unique<Loss::State>(Loss::State{state(), std::make_unique<nn::Tape>()});
  loss->weight = weight_of(of, made);
  of.engine->begin_micro_batch(of.requires_sync);
  const models::Pass pass{static_cast<float>(scale / loss->weight), loss->tape.get(), of.seed};
  loss->sum = of.model->loss(made, pass).read().loss_sum;
  of.passes += 1;
  of.targets += static_cast<int64_t>(loss->weight);
  return Loss(std::move(loss));
}

double Model::evaluate(const Batch& batch) {
  const data::Batch made = batch_on_every_rank(*state(), batch, "Model::evaluate");
  const double weight = weight_of(*state(), made);
  ProcessGroup ranks(state()->layout->ranks);
  return ranks.all_reduce(state()->model->loss(made, {}).read().loss_sum) / weight;
}

::trainyard::DType internal(DType dtype) {
  switch (dtype) {
    case DType::BFloat16:
      return ::trainyard::DType::BFloat16;
    case DType::Float16:
      return ::trainyard::DType::Float16;
    case DType::Float32:
      break;
  }
  return ::trainyard::DType::Float32;
}

DType external(::trainyard::DType dtype) {
  if (dtype == ::trainyard::DType::BFloat16) return DType::BFloat16;
  return dtype == ::trainyard::DType::Float16 ? DType::Float16 : DType::Float32;
}

std::string to_string(DType dtype) {
  if (dtype == DType::Float32) return "float32";
  return dtype == DType::BFloat16 ? "bfloat16" : "float16";
}

namespace {

const shard::ParameterShard& sharded(const ModelState& model, std::size_t number, const char* who) {
  model.require_complete(who);
  return *model.shard_of(*model.parameters.at(number));
}

}  // namespace

std::string Parameter::name() const {
  return model_->parameters.at(number_)->name();
}

std::vector<std::int64_t> Parameter::shape() const {
  return model_->parameters.at(number_)->shape();
}

std::vector<std::int64_t> Parameter::local_shape() const {
  std::vector<std::int64_t> local = shape();
  if (const auto* const shard = model_->shard_of(*model_->parameters.at(number_))) local[0] = shard->rows.count;
  return local;
}

std::vector<Placement> Parameter::placements() const {
  if (!model_->shard_of(*model_->parameters.at(number_))) return {};
  const int shards = model_->mesh->of(shard::Dimension::Shard).world(), replicas = model_->mesh->of(shard::Dimension::Replicate).world();
  if (replicas == 1) return {Placement::Shard0};
  if (shards == 1) return {Placement::Replicate};
  return {Placement::Replicate, Placement::Shard0};
}

DType Parameter::dtype() const {
  const autograd::Parameter& parameter = *model_->parameters.at(number_);
  if (!model_->shard_of(parameter) || !model_->group_with(parameter)->is_unsharded()) return DType::Float32;
  return external(parameter.value().dtype());
}

std::vector<float> Parameter::to_local() const {
  return floats_of(sharded(*model_, number_, "Parameter::to_local").value);
}

std::vector<float> Parameter::local_gradient() const {
  const shard::ParameterShard& shard = sharded(*model_, number_, "Parameter::local_gradient");
  if (!model_->group_with(*shard.parameter)->has_gradient())
    throw std::logic_error("Parameter::local_gradient: there is none; call backward() first");
  return floats_of(shard.gradient);
}

std::vector<float> Parameter::full_tensor() const {
  const shard::ParameterShard& shard = sharded(*model_, number_, "Parameter::full_tensor");
  return floats_of(train::gather_rows(model_->mesh->of(shard::Dimension::Shard), shard.value, shard.parameter->shape(), name()));
}

}  // namespace trainyard::fsdp
