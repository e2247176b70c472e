#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "assemble/exchange.h"
#include "assemble/sharded_model.h"
#include "base/error.h"
#include "checkpoint/open_weights.h"
#include "checkpoint/reader.h"
#include "checkpoint/torch_writer.h"
#include "fsdp/state.h"
#include "train/gather.h"
#include "train/snapshot.h"

namespace trainyard::fsdp {
namespace fs = std::filesystem;
namespace {

void require_fit(const ModelState& state, const StateDict& given) {
  for (const autograd::Parameter* const parameter : state.parameters) {
    const auto found = given.find(parameter->name());
    if (found == given.end())
      throw InputError(fmt::format("set_model_state_dict: {} is missing", parameter->name()));
    const FullTensor& tensor = found->second;
    if (tensor.shape != parameter->shape() || std::ssize(tensor.values) != parameter->count())
      throw InputError(fmt::format("set_model_state_dict: {} is {} with {} values, but the model's is {}",
                                   parameter->name(), ::trainyard::to_string(tensor.shape), tensor.values.size(),
                                   ::trainyard::to_string(parameter->shape())));
  }
  for (const auto& [name, tensor] : given)
    if (std::ranges::none_of(state.parameters, [&name = name](const auto* each) { return each->name() == name; }))
      throw InputError(fmt::format("set_model_state_dict: the model has no {}", name));
}

/// The elements of a whole tensor where rows of it are asked for.
std::span<const float> rows_of(const FullTensor& tensor, int64_t begin, int64_t count) {
  const int64_t row = std::ssize(tensor.values) / std::max<int64_t>(tensor.shape.at(0), 1);
  return std::span(tensor.values).subspan(static_cast<size_t>(begin * row), static_cast<size_t>(count * row));
}

checkpoint::RowSource source_of(const std::string& name, const FullTensor& tensor) {
  if (tensor.shape.empty() || count_of(tensor.shape) != std::ssize(tensor.values))
    throw InputError(fmt::format("save_state_dict: {} is {} with {} values", name, ::trainyard::to_string(tensor.shape),
                                 tensor.values.size()));
  return {.name = name, .shape = tensor.shape, .read = [&tensor](int64_t begin, int64_t count) {
            Shape shape = tensor.shape;
            shape[0] = count;
            return Tensor::from<float>(rows_of(tensor, begin, count), shape);
          }};
}

}  // namespace

StateDict get_model_state_dict(const Model& model) {
  const ModelState& state = *model.state();
  state.require_complete("get_model_state_dict");
  StateDict all;
  for (const autograd::Parameter* const parameter : state.parameters) {
    const Tensor whole = train::gather_rows(state.mesh->of(shard::Dimension::Shard), state.shard_of(*parameter)->value,
                                            parameter->shape(), parameter->name());
    if (state.layout->ranks.comm.rank() != 0) continue;
    const auto values = whole.values<float>();
    all[parameter->name()] = {parameter->shape(), {values.begin(), values.end()}};
  }
  return all;
}

void set_model_state_dict(const Model& model, const StateDict& state_dict) {
  const ModelState& state = *model.state();
  state.require_complete("set_model_state_dict");
  train::on_rank_0(state.layout->ranks.comm, [&] { require_fit(state, state_dict); });
  state.reshard_all();
  state.engine->fill_from_rank_0([&](const autograd::Parameter& parameter, Rows rows, std::span<float> out) {
    std::ranges::copy(rows_of(state_dict.at(parameter.name()), rows.begin, rows.count), out.begin());
  });
}

void save_state_dict(const StateDict& state_dict, const std::string& path) {
  std::vector<checkpoint::RowSource> sources;
  for (const auto& [name, tensor] : state_dict) sources.push_back(source_of(name, tensor));
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) fs::create_directories(folder);
  checkpoint::write_torch_file(path, sources);
}

StateDict load_state_dict(const std::string& path) {
  const auto weights = checkpoint::open_weights(path);
  StateDict all;
  for (const std::string& name : weights->names()) {
    const Shape shape = weights->shape(name);
    const Tensor whole = weights->read_rows(name, 0, shape.empty() ? 1 : shape[0]);
    const auto values = whole.values<float>();
    all[name] = {shape, {values.begin(), values.end()}};
  }
  return all;
}

void load_weights(const Model& model, const std::string& path) {
  const ModelState& state = *model.state();
  state.require_complete("load_weights");
  state.reshard_all();
  train::fill_from_weights(state, {path});
}

namespace {

/// One claims its folder once; another folder is another.
checkpoint::Saver& saver_of(OptimizerState& state, const fs::path& folder) {
  if (state.saver && state.saver_folder == folder) return *state.saver;
  const ProcessGroupState& ranks = state.model->layout->ranks;
  checkpoint::SaverOptions options{.folder = folder, .rank = ranks.comm.rank(), .world = ranks.comm.world()};
  options.generation = ranks.generation;
  state.saver.reset();
  state.saver = std::make_unique<checkpoint::Saver>(options, ranks.store);
  state.saver_folder = folder;
  return *state.saver;
}

void require_same(const Model& model, const AdamW& optimizer, const char* who) {
  model.state()->require_complete(who);
  if (optimizer.state()->model != model.state())
    throw std::logic_error(fmt::format("{}: the optimizer is another model's", who));
}

}  // namespace

void save_checkpoint(const std::string& folder, const Model& model, const AdamW& optimizer) {
  require_same(model, optimizer, "save_checkpoint");
  OptimizerState& state = *optimizer.state();
  const train::Progress progress{state.adamw.steps_done(), state.model->targets};
  const checkpoint::SaveResult result = saver_of(state, folder).save(train::snapshot_of(
      *state.model->engine, state.adamw, progress,
      models::to_hugging_face(state.model->model->config(), state.model->given_config_json)));
  if (!result.saved) throw std::runtime_error(fmt::format("save_checkpoint: {}: {}", folder, result.reason));
}

std::optional<std::int64_t> load_checkpoint(const std::string& folder, const Model& model, const AdamW& optimizer) {
  require_same(model, optimizer, "load_checkpoint");
  OptimizerState& state = *optimizer.state();
  const ProcessGroupState& ranks = state.model->layout->ranks;
  checkpoint::Agreement agreement(ranks.store, "load_checkpoint", ranks.comm.rank(), ranks.comm.world(),
                                  ranks.comm.timeout());
  const auto found = checkpoint::find_latest(folder, agreement);
  if (!found) return std::nullopt;
  train::on_every_rank(ranks.comm, [&] {
    state.model->targets =
        train::restore(*state.model->engine, state.adamw, *found, state.model->model->config()).tokens;
  });
  return found->step();
}

}  // namespace trainyard::fsdp
