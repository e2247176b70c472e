// Checkpoints of real sharded models: from any mesh and form into any other.
#include <catch2/catch.hpp>

#include "assemble/sharded_model.h"
#include "base/files.h"
#include "checkpoint/convert.h"
#include "checkpoint/name_map.h"
#include "checkpoint/saver.h"
#include "config/config.h"
#include "ops/sum.h"
#include "rendezvous/memory_store.h"
#include "small_run.h"
#include "support/ranks.h"
#include "support/support.h"
#include "tensor/safetensors.h"
#include "train/gather.h"
#include "train/snapshot.h"

namespace trainyard::train {
namespace {

namespace fs = std::filesystem;

double sum_of(const Tensor& x) {
  const Tensor sum = ops::sum(x);
  return sum.values<double>()[0];
}

models::ModelConfig state_dict_model() {
  return {.vocab_size = 30,
          .hidden_size = 10,
          .intermediate_size = 7,
          .layers = 2,
          .heads = 4,
          .kv_heads = 1,  // which ranks of a tensor dimension share
          .head_dim = 2,
          .max_positions = 16,
          .tied_head = true};
}

/// Moments that tell every element of every tensor apart, whoever holds it.
void fill_moments(optim::AdamW& optimizer) {
  for (optim::AdamW::Moments& moments : optimizer.moments()) {
    const autograd::Parameter& parameter = *moments.shard->parameter;
    const Shape& whole = parameter.whole_shape();
    const int64_t rows = std::max<int64_t>(1, moments.first.size(0)), own = moments.first.count() / rows,
                  columns = count_of(whole) / whole[0];
    const autograd::Part& part = parameter.part();
    const int64_t row = moments.shard->rows.begin + (part.dimension == 0 ? part.begin : 0),
                  column = part.dimension == 1 ? part.begin : 0;
    const auto name = static_cast<float>(parameter.name().size());
    for (int64_t i = 0; i < moments.first.count(); ++i) {
      const int64_t place = (row + i / own) * columns + column + i % own;
      moments.first.data<float>()[i] = name * 1000 + static_cast<float>(place);
      moments.second.data<float>()[i] = -moments.first.data<float>()[i];
    }
  }
}

struct Form {
  MeshSize mesh;
  bool is_full = false;
};

checkpoint::Snapshot snapshot_of(const ShardedModel& sharded, optim::AdamW& optimizer) {
  return train::snapshot_of(*sharded.engine, optimizer, {.step = 7}, models::to_hugging_face(state_dict_model()));
}

checkpoint::Gather gather_of(const ShardedModel& sharded) {
  return [&sharded](const checkpoint::Shard& shard) { return gather_whole(*sharded.engine, shard); };
}

void save(const fs::path& folder, const Form& form) {
  rendezvous::MemoryStore store;
  const int world = form.mesh.world();
  trainyard::test::run_ranks(world, [&](comm::Communicator& comm) {
    const ShardedModel sharded = shard_model(state_dict_model(), comm, {form.mesh});
    fill_random(*sharded.engine, 5);
    optim::AdamW optimizer(*sharded.engine, {});
    fill_moments(optimizer);
    checkpoint::Saver saver(
        {.folder = folder, .rank = comm.rank(), .world = world, .sharing_patience = std::chrono::milliseconds(20)},
        store);
    const checkpoint::Snapshot snapshot = snapshot_of(sharded, optimizer);
    return form.is_full ? saver.save_full(snapshot, gather_of(sharded)).saved : saver.save(snapshot).saved;
  });
}

enum class ReadBy { EachRank, Rank0 };

/// Where rank 0 reads for all the others know the manifest alone, and their folder is not there.
checkpoint::Checkpoint open(const fs::path& folder, ReadBy by, comm::Communicator& comm) {
  const fs::path step = folder / "step-7";
  if (by == ReadBy::EachRank) return checkpoint::Checkpoint(step);
  checkpoint::Checkpoint opened(comm.rank() == 0 ? step : folder / "out of reach", checkpoint::read_manifest(step));
  opened.read_for_all(comm.rank() == 0, [&comm](Tensor& rows) { comm.broadcast(rows, 0).wait(); });
  return opened;
}

/// Elements that differ from what was saved, over all ranks of a world of another mesh.
int64_t wrong_after_loading(const fs::path& folder, MeshSize mesh, ReadBy by = ReadBy::EachRank) {
  int64_t wrong = 0;
  for (const int64_t of_rank : trainyard::test::run_ranks(mesh.world(), [&](comm::Communicator& comm) {
         const ShardedModel expected = shard_model(state_dict_model(), comm, {mesh});
         fill_random(*expected.engine, 5);
         optim::AdamW optimizer(*expected.engine, {});
         fill_moments(optimizer);
         int64_t differing = 0;
         checkpoint::Snapshot saved = snapshot_of(expected, optimizer);
         const checkpoint::Checkpoint checkpoint = open(folder, by, comm);
         for (const auto* shards : {&saved.model, &saved.optimizer})
           for (const checkpoint::Shard& each : *shards) {
             checkpoint::Shard read = each;
             read.local = Tensor::zeros(each.local.shape(), DType::Float32);
             checkpoint.read_into(read);
             for (int64_t i = 0; i < read.local.count(); ++i)
               differing += read.local.data<float>()[i] != each.local.data<float>()[i];
           }
         return differing;
       }))
    wrong += of_rank;
  return wrong;
}

}  // namespace

TEST_CASE("state dict: saved by any mesh in either form it loads into any other, optimizer included, bit for bit",
          "[train][bit_equal]") {
  const std::vector<MeshSize> meshes{{1, 1},
                                     {1, 2},
                                     {2, 1},
                                     {1, 3},
                                     {2, 2},
                                     {1, 4},
                                     {4, 1},
                                     {.tensor = 2},
                                     {.tensor = 4},
                                     {.shard = 2, .tensor = 2},
                                     {.replicate = 2, .context = 2, .tensor = 2}};
  for (const bool is_full : {false, true}) {
    for (const MeshSize& from : meshes) {
      const trainyard::test::TemporaryFolder folder;
      save(folder.path(), {from, is_full});
      for (const MeshSize& to : meshes) {
        INFO((is_full ? "full " : "sharded ") << from.replicate << " x " << from.shard << " x " << from.tensor << " to "
                                              << to.replicate << " x " << to.shard << " x " << to.tensor);
        CHECK(wrong_after_loading(folder.path(), to) == 0);
      }
    }
  }
}

TEST_CASE("state dict: what rank 0 alone reads, for ranks that reach no file, is the same in every mesh and form",
          "[train]") {
  const bool is_full = GENERATE(false, true);
  const trainyard::test::TemporaryFolder folder;
  save(folder.path(), {{1, 3}, is_full});
  for (const MeshSize& to : {MeshSize{1, 2}, MeshSize{1, 4}, MeshSize{2, 2}, MeshSize{.shard = 2, .tensor = 2}})
    CHECK(wrong_after_loading(folder.path(), to, ReadBy::Rank0) == 0);
}

TEST_CASE("state dict: only parts of rows make a checkpoint of a version that older programs do not read", "[train]") {
  const auto version_of = [](const MeshSize& mesh) {
    const trainyard::test::TemporaryFolder folder;
    save(folder.path(), {mesh});
    const std::string text = read_file(folder.path() / "step-7" / checkpoint::kManifestName, size_t{1} << 20);
    return nlohmann::json::parse(text).at("version").get<int>();
  };
  CHECK(version_of({1, 2}) == 1);
  CHECK(version_of({.tensor = 2}) == 2);
}

TEST_CASE("state dict: an export is the same bytes from every layout", "[train]") {
  const auto exported = [](const MeshSize& mesh, bool is_full) {
    const trainyard::test::TemporaryFolder folder;
    save(folder.path(), {mesh, is_full});
    checkpoint::export_to_hugging_face(checkpoint::Checkpoint(folder.path() / "step-7"), {.output = folder / "hf"});
    // What a program is to read that knows no parts of rows.
    static_cast<void>(checkpoint::reshard(checkpoint::Checkpoint(folder.path() / "step-7"), 3, folder / "resharded"));
    const checkpoint::Checkpoint resharded(folder / "resharded/step-7");
    checkpoint::export_to_hugging_face(resharded, {.output = folder / "hf of it"});
    const std::string exported_text = read_file(folder / "hf/model.safetensors", size_t{1} << 20);
    CHECK(read_file(folder / "hf of it/model.safetensors", size_t{1} << 20) == exported_text);
    const std::string manifest = read_file(resharded.path() / checkpoint::kManifestName, size_t{1} << 20);
    CHECK(nlohmann::json::parse(manifest).at("version") == 1);
    return exported_text;
  };
  const std::string one = exported({1, 1}, false);
  for (const bool is_full : {false, true}) {
    CHECK(exported({.tensor = 4}, is_full) == one);
    CHECK(exported({.shard = 2, .tensor = 2}, is_full) == one);
  }
}

TEST_CASE("state dict: the full form takes the memory of the largest tensor and one rank's rows of it", "[train]") {
  const trainyard::test::TemporaryFolder folder;
  rendezvous::MemoryStore store;
  const auto extra = trainyard::test::run_ranks(3, [&](comm::Communicator& comm) {
    const ShardedModel sharded = shard_model(state_dict_model(), comm, {{1, 3}});
    fill_random(*sharded.engine, 5);
    optim::AdamW optimizer(*sharded.engine, {});
    checkpoint::Saver saver(
        {.folder = folder.path(), .rank = comm.rank(), .world = 3, .sharing_patience = std::chrono::milliseconds(20)},
        store);
    const checkpoint::Snapshot snapshot = snapshot_of(sharded, optimizer);
    const auto ledger = std::make_shared<MemoryLedger>();
    const MemoryScope scope(ledger);
    saver.save_full(snapshot, gather_of(sharded));
    return ledger->peak_bytes();
  });
  const size_t largest = 30 * 10 * sizeof(float);  // the embedding; 3 divides its rows
  for (const size_t bytes : extra) {
    CHECK(bytes >= largest);
    CHECK(bytes <= largest + largest / 3);
  }
}

TEST_CASE("state dict: what was frozen when it was saved begins at zero, with a first step of its own", "[train]") {
  const trainyard::test::TemporaryFolder folder;
  rendezvous::MemoryStore store;
  const auto step = [](ShardedModel& sharded, optim::AdamW& optimizer) {
    const Tensor ids = Tensor::zeros({1, 4}, DType::Int32);
    nn::Tape tape;
    sharded.engine->begin_micro_batch(true);
    sharded.model->loss({ids, ids}, {.gradient_scale = 1, .tape = &tape});
    tape.backward();
    sharded.engine->finish_backward();
    optimizer.step(1e-2, {});
  };
  const auto wrong = trainyard::test::run_ranks(2, [&](comm::Communicator& comm) {
    test::FormulaLoader loader({1, 4}, 30, 1, comm.rank(), 2);
    checkpoint::Saver saver(
        {.folder = folder.path(), .rank = comm.rank(), .world = 2, .sharing_patience = std::chrono::milliseconds(20)},
        store);
    const Description description{models::to_hugging_face(state_dict_model()), "", {}, ""};
    const config::Optimizer settings{.weight_decay = 0};
    optim::LossScaler scaler;
    {
      ShardedModel sharded = shard_model(state_dict_model(), comm, {.mesh = {1, 2}, .freeze = {"*.mlp.*"}});
      fill_random(*sharded.engine, 5);
      optim::AdamW optimizer(*sharded.engine, settings);
      for (int done = 0; done < 3; ++done) step(sharded, optimizer), sharded.engine->release_gradients();
      saver.save(snapshot_of({comm, *sharded.model, *sharded.engine, optimizer, scaler, loader}, {3, 12}, description));
    }
    ShardedModel sharded = shard_model(state_dict_model(), comm, {.mesh = {1, 2}});
    optim::AdamW optimizer(*sharded.engine, settings);
    Parts parts{comm, *sharded.model, *sharded.engine, optimizer, scaler, loader};
    restore(parts, checkpoint::Checkpoint(folder / "step-3"), state_dict_model());
    std::vector<std::vector<float>> before;
    for (const optim::AdamW::Moments& each : optimizer.moments())
      before.emplace_back(each.shard->value.values<float>().begin(), each.shard->value.values<float>().end());
    step(sharded, optimizer);
    int64_t off = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      const optim::AdamW::Moments& each = optimizer.moments()[i];
      const bool was_frozen = each.shard->parameter->name().find(".mlp.") != std::string::npos;
      off += each.started != (was_frozen ? 3 : 0);
      for (size_t at = 0; was_frozen && at < before[i].size(); ++at) {
        const float gradient = each.shard->gradient.values<float>()[at];  // Adam's first step is lr times its sign
        const float expected = before[i][at] - 1e-2F * gradient / (std::abs(gradient) + 1e-8F);
        off += std::abs(each.shard->value.values<float>()[at] - expected) > 1e-5F;
      }
    }
    // And the next checkpoint knows where each began.
    const checkpoint::Snapshot next = snapshot_of(parts, {4, 16}, description);
    saver.save(next);
    optim::AdamW later(*sharded.engine, settings);
    Parts again{comm, *sharded.model, *sharded.engine, later, scaler, loader};
    restore(again, checkpoint::Checkpoint(folder / "step-4"), state_dict_model());
    for (size_t i = 0; i < later.moments().size(); ++i)
      off += later.moments()[i].started != optimizer.moments()[i].started;
    return off;
  });
  CHECK(wrong == std::vector<int64_t>{0, 0});
}

TEST_CASE("state dict: moments of one type resume as another", "[train]") {
  using config::StatePrecision;
  const trainyard::test::TemporaryFolder folder;
  const auto [before, after] = GENERATE(std::pair(StatePrecision::BFloat16, StatePrecision::Float32),
                                        std::pair(StatePrecision::Float32, StatePrecision::BFloat16),
                                        std::pair(StatePrecision::BFloat16, StatePrecision::BFloat16));
  rendezvous::MemoryStore store;
  const auto wrong = trainyard::test::run_ranks(2, [&, before = before, after = after](comm::Communicator& comm) {
    checkpoint::Saver saver({.folder = folder.path(), .rank = comm.rank(), .world = 2}, store);
    ShardedModel sharded = shard_model(state_dict_model(), comm, {.mesh = {1, 2}});
    fill_random(*sharded.engine, 5);
    optim::AdamW saved(*sharded.engine, {.state_dtype = before}), resumed(*sharded.engine, {.state_dtype = after});
    for (optim::AdamW::Moments& each : saved.moments()) {
      ops::fill(each.first, static_cast<float>(each.number) + 0.25F);  // which bfloat16 has
      ops::fill(each.second, static_cast<float>(each.number));
    }
    test::FormulaLoader loader({1, 4}, 30, 1, comm.rank(), 2);
    optim::LossScaler scaler;
    const auto parts = [&](optim::AdamW& optimizer) {
      return Parts{comm, *sharded.model, *sharded.engine, optimizer, scaler, loader};
    };
    saver.save(snapshot_of(parts(saved), {3, 12}, {models::to_hugging_face(state_dict_model()), "", {}, ""}));
    Parts again = parts(resumed);
    restore(again, checkpoint::Checkpoint(folder / "step-3"), state_dict_model());
    int64_t off = 0;
    for (const optim::AdamW::Moments& each : resumed.moments()) {
      off += each.first.dtype() != (after == StatePrecision::Float32 ? DType::Float32 : DType::BFloat16);
      const auto count = static_cast<double>(each.first.count()), number = static_cast<double>(each.number);
      off += sum_of(each.first) != count * (number + 0.25);
      off += sum_of(each.second) != count * number;
    }
    return off;
  });
  CHECK(wrong == std::vector<int64_t>{0, 0});
}

TEST_CASE("name map: a model under other names, with q, k and v in one tensor, loads the same bits", "[train][bit_equal]") {
  if (trainyard::test::test_data().empty()) return trainyard::test::skip("no reference data");
  const fs::path model = trainyard::test::test_data() / "parity/llama3-tiny";
  const trainyard::test::TemporaryFolder folder;
  fs::copy_file(model / "config.json", folder / "config.json");
  const SafetensorsFile stored(model / "model.safetensors");
  std::vector<SafetensorsWriter::Declared> declared;
  std::vector<Tensor> tensors;
  for (const SafetensorsEntry& entry : stored.entries()) {
    std::string name = entry.name;
    if (const size_t at = name.find("self_attn.q_proj"); at != std::string::npos) {
      const std::string block = name.substr(0, at);
      Shape shape{0, entry.shape[1]};
      std::vector<float> rows;
      for (const char* const part : {"q", "k", "v"}) {
        const Tensor read = stored.read(block + "self_attn." + part + "_proj.weight");
        rows.insert(rows.end(), read.values<float>().begin(), read.values<float>().end());
        shape[0] += read.size(0);
      }
      declared.push_back({"h" + block.substr(std::string("model.layers").size()) + "qkv", DType::Float32, shape});
      tensors.push_back(Tensor::from<float>(rows, shape));
    } else if (name.find("k_proj") == std::string::npos && name.find("v_proj") == std::string::npos) {
      declared.push_back({"theirs." + name, DType::Float32, entry.shape});
      tensors.push_back(stored.read(entry.name));
    }
  }
  SafetensorsWriter writer(folder / "model.safetensors", declared);
  for (const Tensor& tensor : tensors) writer.append(tensor);
  writer.finish();
  write_file_atomically(folder / "map.yaml", R"(rename: [{from: "theirs.{name...}", to: "{name}"}]
split:
  - from: "h.{n}.qkv"
    to: ["model.layers.{n}.self_attn.q_proj.weight", "model.layers.{n}.self_attn.k_proj.weight",
         "model.layers.{n}.self_attn.v_proj.weight"]
)");
  const auto config = models::parse_config(read_file(model / "config.json"), model / "config.json");
  const auto differing = trainyard::test::run_ranks(2, [&](comm::Communicator& comm) {
    const ShardedModel ours = shard_model(config, comm, {{1, 2}}), theirs = shard_model(config, comm, {{1, 2}});
    fill_from_weights(ours, {model});
    fill_from_weights(theirs, {folder.path(), folder / "map.yaml"});
    int64_t count = 0;
    for (size_t i = 0; i < ours.engine->shards().size(); ++i) {
      const Tensor &a = ours.engine->shards()[i].value, &b = theirs.engine->shards()[i].value;
      for (int64_t at = 0; at < a.count(); ++at) count += a.data<float>()[at] != b.data<float>()[at];
    }
    return count;
  });
  CHECK(differing == std::vector<int64_t>{0, 0});
}

}  // namespace trainyard::train
