#include "run/evaluate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <vector>

#include "assemble/exchange.h"
#include "base/error.h"
#include "data/loaders.h"
#include "models/language_model.h"
#include "ops/cast.h"
#include "tensor/safetensors.h"
#include "train/finite.h"
#include "train/gather.h"
#include "train/snapshot.h"

namespace trainyard::train {
namespace {

/// The result is on the host.
Tensor as_float32(const Tensor& tensor) {
  Tensor floats = Tensor::empty(tensor.shape(), DType::Float32, tensor.device());
  ops::cast(tensor, floats);
  return on_device(floats, {});
}

/// Row `index` of what every rank that gets rows of its own holds, in their order; rows past a rank's last are zero.
/// Collective.
Tensor gather_row(const shard::Mesh& mesh, const Tensor& rows, int64_t index, const Shape& row_shape) {
  comm::Communicator& world = mesh.world();
  Shape one = row_shape;
  one.insert(one.begin(), 1);
  Tensor mine = index < rows.size(0) ? as_float32(rows.rows(index, 1)) : Tensor::zeros(one, DType::Float32);
  one[0] = world.world();
  Tensor all = Tensor::empty(one, DType::Float32);
  world.all_gather(mine, all, "logits").wait();
  one[0] = mesh.size().data_ranks();
  if (one[0] == world.world()) return all;
  Tensor of_data_ranks = Tensor::empty(one, DType::Float32);
  for (int64_t rank = 0; rank < one[0]; ++rank) {
    Tensor place = of_data_ranks.rows(rank, 1);
    copy(all.rows(rank * (world.world() / one[0]), 1), place);
  }
  return of_data_ranks;
}

/// It is called before a model is read.
void require_place_for(const std::filesystem::path& file) {
  std::filesystem::path folder = file.parent_path();
  if (folder.empty()) folder = ".";
  if (!std::filesystem::is_directory(folder))
    throw InputError(fmt::format("--dump: {} is no folder; make it first", folder.string()));
  const bool is_there = std::filesystem::exists(file);
  const auto& written = is_there ? file : folder;
  if (std::filesystem::is_directory(file) || ::access(written.c_str(), is_there ? W_OK : W_OK | X_OK) != 0)
    throw InputError(fmt::format("--dump: {} cannot be written; name a file in a folder that can", file.string()));
}

/// Streams logits row by row and gradients tensor by tensor into the file of rank 0: no rank holds more than one.
void dump(const Evaluation& evaluation, const World& world, ShardedModel& sharded, const Tensor& logits, int64_t rows) {
  std::vector<SafetensorsWriter::Declared> declared{{"logits", DType::Float32, {rows, logits.size(1), logits.size(2)}}};
  if (evaluation.gradients)
    for (const shard::ParameterShard& shard : sharded.engine->shards())
      declared.push_back({"grad." + shard.parameter->name(), DType::Float32, shard.parameter->whole_shape()});
  std::unique_ptr<SafetensorsWriter> writer;
  if (world.is_main()) writer = std::make_unique<SafetensorsWriter>(*evaluation.dump, declared);

  const shard::Mesh& mesh = *sharded.mesh;
  const int64_t size = mesh.size().data_ranks();
  for (int64_t begin = 0; begin < rows; begin += size) {
    const Tensor round = gather_row(mesh, logits, begin / size, {logits.size(1), logits.size(2)});
    if (writer) writer->append(round.rows(0, std::min(size, rows - begin)));
  }
  if (evaluation.gradients) {
    for (const shard::ParameterShard& shard : sharded.engine->shards()) {
      const Tensor gradient =
          gather_whole(mesh, *shard.parameter, on_device(shard.gradient, {}), shard.parameter->name());
      if (writer) writer->append(gradient);
    }
  }
  if (writer) writer->finish();
}

}  // namespace

Evaluated evaluate(const Evaluation& evaluation, const World& world) {
  on_rank_0(world.comm, [&] {
    if (evaluation.dump) require_place_for(*evaluation.dump);
  });
  ShardedModel sharded = load_model(evaluation.source, world).sharded;
  const MeshSize& mesh = sharded.mesh->size();
  const bool counts_rows = sharded.mesh->counts_rows();
  const auto loader =
      data::token_batches(evaluation.tokens, {.place = {mesh.data_rank(world.comm.rank()), mesh.data_ranks()},
                                              .prefer = data::Prefer::SingleBatch,
                                              .vocab_size = sharded.model->config().vocab_size});
  const data::Batch batch = loader->next();
  const GatheredScalars counts(
      world.comm,
      counts_rows ? std::array{static_cast<double>(batch.valid_tokens), sharded.model->loss_weight(batch)}
                  : std::array{0.0, 0.0},
      "agree");
  const double valid = counts.sum(0), weight = counts.sum(1);
  if (valid == 0) throw InputError(evaluation.tokens.string() + ": no position has a target, so there is no loss");

  nn::Tape tape;
  sharded.engine->begin_micro_batch(true);
  const ops::Loss own =
      sharded.model->loss(batch, {static_cast<float>(1 / weight), evaluation.gradients ? &tape : nullptr});
  tape.backward();
  sharded.engine->finish_backward();
  if (evaluation.dump)
    dump(evaluation, world, sharded, models::language_model(*sharded.model).logits(batch),
         loader->sequences_per_step());

  const double own_sum = counts_rows ? own.read().loss_sum : 0;
  const double loss = GatheredScalars(world.comm, std::array{own_sum}, "loss").sum(0) / weight;
  if (!std::isfinite(loss)) throw_not_finite(world.comm, *sharded.engine, evaluation.source.weights().string(), loss);
  const bool makes_text = dynamic_cast<const models::LanguageModel*>(sharded.model.get()) != nullptr;
  return {loss, makes_text ? std::optional(std::exp(loss)) : std::nullopt, static_cast<int64_t>(valid)};
}

}  // namespace trainyard::train
