// Small runs of every kind: each must give the losses and gradient norms of one rank alone, and send what the formulas
// of docs/strategies.md say, in their order.
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "assemble/sharded_model.h"
#include "covering.h"
#include "data/loaders.h"
#include "shard/traffic.h"
#include "support/ranks.h"
#include "support/support.h"
#include "tensor/safetensors.h"
#include "train/trainer.h"

namespace trainyard::train {
namespace {

using shard::BackwardPrefetch;
using shard::Event;
using shard::Reshard;

models::ModelConfig odd_model() {  // nothing here divides by 2, 3 or 4
  return {.family = "qwen3",
          .vocab_size = 37,
          .hidden_size = 13,
          .intermediate_size = 19,
          .layers = 3,
          .heads = 3,
          .kv_heads = 1,
          .head_dim = 6,
          .max_positions = 64,
          .tied_head = false};
}

/// Eight rows, the same in every step; a third of the targets of some are ignored, so that ranks have unequal shares.
void write_rows(const std::filesystem::path& path) {
  std::vector<int32_t> ids, labels;
  for (int32_t row = 0; row < 8; ++row)
    for (int32_t t = 0; t < 11; ++t) {
      ids.push_back((row * 7 + t * 5) % 37);
      labels.push_back(row % 3 == 1 && t % 3 == 0 ? -100 : ids.back());
    }
  const SafetensorsWriter::Declared declared[] = {{"input_ids", DType::Int32, {8, 11}},
                                                  {"labels", DType::Int32, {8, 11}}};
  SafetensorsWriter writer(path, declared);
  writer.append(Tensor::from<int32_t>(ids, {8, 11}));
  writer.append(Tensor::from<int32_t>(labels, {8, 11}));
  writer.finish();
}

struct Combination {
  Sharding sharding;
  int64_t accumulation = 1;
  double clip = 0;
  optim::LossScaling scaling = {};
};

struct Sent {
  int64_t count = 0;
  uint64_t bytes = 0;
  bool operator==(const Sent&) const = default;
};

/// What one rank saw of two steps; the second knows the order and gathers ahead.
struct Seen {
  std::vector<double> losses, norms;
  std::vector<Event> events;         ///< of the second step
  std::map<std::string, Sent> sent;  ///< by collective, of both, as the communicators did it
  shard::Traffic formula;            ///< of one step
  std::vector<std::string> labels;   ///< of the groups, in the order of forward but for the root, the last
  std::set<std::string> trained;     ///< groups that train
};

Seen run(comm::Communicator& comm, const Combination& what, const std::filesystem::path& rows) {
  Seen seen;
  std::mutex mutex;
  comm.on_collective([&](const comm::CollectiveRecord& record) {
    if (!record.label.starts_with("model") && record.label != "root" && record.label != "lm_head") return;
    const std::lock_guard lock(mutex);
    ++seen.sent[record.name].count;
    seen.sent[record.name].bytes += record.bytes;
  });
  {
    ShardedModel sharded = shard_model(odd_model(), comm, what.sharding);
    fill_random(*sharded.engine, 3);
    const config::Optimizer settings{.lr = 1e-2, .decay = config::Decay::Constant};
    optim::AdamW optimizer(*sharded.engine, settings);
    optim::LossScaler scaler(what.scaling);
    const auto loader = data::token_batches(
        rows, {.place = {comm.rank(), comm.world()}, .accumulation_steps = what.accumulation, .vocab_size = 37});
    sharded.engine->on_event([&](const Event& event) { seen.events.push_back(event); });
    Trainer trainer({comm, *sharded.model, *sharded.engine, optimizer, scaler, *loader},
                    {.total_steps = 2,
                     .accumulation_steps = what.accumulation,
                     .clip_grad_norm = what.clip,
                     .schedule = optim::schedule_of(settings, 2)},
                    {.asked_to_stop = [] { return false; },
                     .on_step =
                         [&](const StepResult& step) {
                           seen.losses.push_back(step.loss);
                           seen.norms.push_back(step.grad_norm);
                           if (step.step == 1) seen.events.clear();
                         },
                     .is_checkpoint_due = [](int64_t) { return false; },
                     .save = [](const Progress&) {}});
    Progress progress;
    trainer.run(progress);
    seen.formula = shard::traffic_of(*sharded.engine, what.accumulation);
    for (const auto& group : sharded.engine->groups()) {
      seen.labels.push_back(group->label());
      if (group->trains()) seen.trained.insert(group->label());
    }
    sharded.mesh->close(std::chrono::steady_clock::now() + std::chrono::seconds(30));
  }
  comm.barrier();
  comm.on_collective(nullptr);
  return seen;
}

std::vector<Seen> run_on_ranks(const Combination& what, const std::filesystem::path& rows) {
  return test::run_ranks(what.sharding.mesh.replicate * what.sharding.mesh.shard,
                         [&](comm::Communicator& comm) { return run(comm, what, rows); });
}

std::vector<std::string> told(const std::vector<Event>& events, Event::Kind kind) {
  std::vector<std::string> groups;
  for (const Event& event : events)
    if (event.kind == kind) groups.push_back(event.group);
  return groups;
}

/// Groups in the order of their gathers: all for forward, those that gave theirs back for backward, once a micro-batch.
std::vector<std::string> expected_gathers(const Seen& seen, const Combination& what) {
  std::vector<std::string> order;
  if (what.sharding.mesh.shard == 1) return order;
  for (int64_t micro = 0; micro < what.accumulation; ++micro) {
    order.push_back("root");
    order.insert(order.end(), seen.labels.begin(), seen.labels.end() - 1);
    if (what.sharding.policy.reshard == Reshard::AfterForward)
      order.insert(order.end(), seen.labels.rbegin() + 1, seen.labels.rend());
  }
  return order;
}

/// Those that train, last first, the root at the end; once a step or once a micro-batch.
std::vector<std::string> expected_reductions(const Seen& seen, const Combination& what, bool wanted) {
  std::vector<std::string> order;
  if (!wanted) return order;
  const int64_t times = what.sharding.policy.sync_every_micro_batch ? what.accumulation : 1;
  for (int64_t time = 0; time < times; ++time) {
    for (auto label = seen.labels.rbegin() + 1; label != seen.labels.rend(); ++label)
      if (seen.trained.contains(*label)) order.push_back(*label);
    order.emplace_back("root");
  }
  return order;
}

Sent twice(const shard::Messages& messages) {
  return {2 * messages.count, 2 * messages.bytes};
}

struct Tolerances {
  double loss = 1e-5, norm = 1e-4;
};

void check(const Combination& what, const std::vector<Seen>& ranks, const Seen& one,
           const Tolerances& tolerances = {}) {
  for (const Seen& seen : ranks)
    for (size_t step = 0; step < 2; ++step) {
      CHECK(seen.losses.at(step) == Approx(one.losses.at(step)).epsilon(tolerances.loss));
      CHECK(seen.norms.at(step) == Approx(one.norms.at(step)).epsilon(tolerances.norm));
    }
  const Seen& seen = ranks.front();
  auto sent = seen.sent;
  CHECK(sent["all_gather"] == twice(seen.formula.gathers));
  CHECK(sent["reduce_scatter"] == twice(seen.formula.scatters));
  CHECK(sent["all_reduce"] == twice(seen.formula.sums));
  const Wrap& wrap = what.sharding.wrap;
  if (wrap.policy == Wrap::Policy::Size || !wrap.classes.empty()) return;  // groups inside blocks: another order
  const MeshSize mesh = what.sharding.mesh;
  CHECK(told(seen.events, Event::Kind::Gather) == expected_gathers(seen, what));
  CHECK(told(seen.events, Event::Kind::Reduce) == expected_reductions(seen, what, mesh.shard > 1));
  CHECK(told(seen.events, Event::Kind::Sum) == expected_reductions(seen, what, mesh.replicate > 1));
}

/// All of it independent of the layout code: ceil(rows / shard) rows a rank of each parameter, of this many bytes each.
uint64_t gathered_bytes_of_a_pass(
    const MeshSize& mesh,
    const std::function<uint64_t(const std::string&)>& size_of_one = [](const auto&) { return 4; }) {
  const models::ModelConfig config = odd_model();
  const auto model = models::build(config);
  uint64_t bytes = 0;
  for (const autograd::Parameter* const parameter : model->parameters()) {
    const int64_t rows = parameter->shape()[0], row = parameter->count() / rows;
    bytes +=
        static_cast<uint64_t>((rows + mesh.shard - 1) / mesh.shard * mesh.shard * row) * size_of_one(parameter->name());
  }
  return bytes;
}

// The choices of each kind. A combination takes one of each.
struct MeshAndReshard {
  MeshSize mesh;
  Reshard reshard = Reshard::AfterForward;
};

std::vector<MeshAndReshard> meshes() {
  std::vector<MeshAndReshard> all;
  for (int world = 1; world <= 8; ++world)
    for (int shard = 1; shard <= world; ++shard) {
      if (world % shard != 0) continue;
      all.push_back({{world / shard, shard}});
      if (shard > 1) all.push_back({{world / shard, shard}, Reshard::AfterBackward});
      for (int post_forward = 2; post_forward < shard; ++post_forward)
        if (shard % post_forward == 0) all.push_back({{world / shard, shard, post_forward}});
    }
  return all;
}

std::vector<shard::Prefetch> prefetches() {
  return {{},
          {.forward = 0, .backward = 0},
          {.forward = 2, .backward = 2},
          {.when = BackwardPrefetch::Post, .early = true},
          {.forward = 3, .backward = 1, .when = BackwardPrefetch::None, .most_in_flight = 0}};
}

std::vector<Wrap> wraps() {
  return {{},
          {.policy = Wrap::Policy::Size, .classes = {}, .min_num_params = 400},
          {.policy = Wrap::Policy::None, .classes = {}},
          {.policy = Wrap::Policy::Transformer, .classes = {"Linear"}}};
}

struct Accumulation {
  int64_t micro_batches = 1;
  bool sync_every = false;
};
const std::vector<Accumulation> kAccumulations{{1}, {2}, {3}, {2, true}};  // 3 does not divide the rows
const std::vector<double> kClips{0, 0.5};
const std::vector<std::vector<std::string>> kFreezes{{}, {"model.embed_tokens.*", "model.layers.1.*"}};

Combination combination_of(const std::vector<size_t>& choice) {
  const MeshAndReshard mesh = meshes()[choice[0]];
  const Accumulation accumulation = kAccumulations[choice[3]];
  return {.sharding = {.mesh = mesh.mesh,
                       .policy = {.reshard = mesh.reshard,
                                  .prefetch = prefetches()[choice[1]],
                                  .sync_every_micro_batch = accumulation.sync_every,
                                  .bucket_bytes = 5000},
                       .wrap = wraps()[choice[2]],
                       .freeze = kFreezes[choice[5]]},
          .accumulation = accumulation.micro_batches,
          .clip = kClips[choice[4]]};
}

}  // namespace

TEST_CASE("matrix: replicas whose groups lie inside blocks, where forward keeps no order, train as one rank does",
          "[matrix]") {
  const test::TemporaryFolder folder;
  write_rows(folder / "rows.safetensors");
  Combination what{.sharding = {.wrap = {.policy = Wrap::Policy::Transformer, .classes = {"Linear"}}}};
  const Seen alone = run_on_ranks(what, folder / "rows.safetensors").front();
  what.sharding.mesh = {2, 1};
  for (int64_t bytes = 1000; bytes < 6000; bytes += 300) {  // a bucket of any neighbours
    what.sharding.policy.bucket_bytes = bytes;
    CAPTURE(bytes);
    const auto ranks = run_on_ranks(what, folder / "rows.safetensors");
    check(what, ranks, alone);
    std::set<std::string> summed;  // a sum takes what there is of the gradients of its group
    for (const Event& event : ranks.front().events) {
      if (event.kind == Event::Kind::Sum) summed.insert(event.group);
      if (event.kind == Event::Kind::Use) CHECK_FALSE(summed.contains(event.group));
    }
  }
}

TEST_CASE("matrix: every mesh, reshard, prefetch, wrap, accumulation, clipping and freezing trains as one rank does",
          "[matrix]") {
  const test::TemporaryFolder folder;
  write_rows(folder / "rows.safetensors");
  std::map<std::pair<size_t, size_t>, Seen> alone;  // by clipping and freezing, which change the result
  for (const std::vector<size_t>& choice : test::covering({meshes().size(), prefetches().size(), wraps().size(),
                                                           kAccumulations.size(), kClips.size(), kFreezes.size()})) {
    const Combination what = combination_of(choice);
    const std::pair key{choice[4], choice[5]};
    if (!alone.contains(key)) {
      const Combination one{.sharding = {.freeze = what.sharding.freeze}, .clip = what.clip};
      alone[key] = run_on_ranks(one, folder / "rows.safetensors").front();
    }
    const MeshSize mesh = what.sharding.mesh;
    CAPTURE(mesh.replicate, mesh.shard, mesh.post_forward, what.sharding.policy.reshard, choice[1], choice[2],
            what.accumulation, what.sharding.policy.sync_every_micro_batch, what.clip, choice[5]);
    check(what, run_on_ranks(what, folder / "rows.safetensors"), alone.at(key));
  }
}

TEST_CASE("matrix: a step gathers 2G - 1 groups or G, in bytes of whole padded rows", "[matrix]") {
  const test::TemporaryFolder folder;
  write_rows(folder / "rows.safetensors");
  const MeshSize mesh{1, 4};
  const auto sent_with = [&](Reshard reshard, const Wrap& wrap) {
    const Combination what{.sharding = {.mesh = mesh, .policy = {.reshard = reshard}, .wrap = wrap}};
    return run_on_ranks(what, folder / "rows.safetensors").front().sent;
  };
  auto kept = sent_with(Reshard::AfterBackward, {});
  CHECK(kept["all_gather"] == Sent{2 * 4, 2 * gathered_bytes_of_a_pass(mesh)});
  CHECK(kept["reduce_scatter"] == Sent{2 * 4, 2 * gathered_bytes_of_a_pass(mesh)});
  auto given_back = sent_with(Reshard::AfterForward, {});
  CHECK(given_back["all_gather"].count == 2 * 7);
  CHECK(sent_with(Reshard::AfterForward, {.policy = Wrap::Policy::None, .classes = {}})["all_gather"] ==
        Sent{2 * 1, 2 * gathered_bytes_of_a_pass(mesh)});
}

namespace {

constexpr DType kFloat = DType::Float32, kBFloat = DType::BFloat16, kHalf = DType::Float16;

struct Mix {
  shard::MixedPrecision all;
  std::vector<PrecisionRule> rules;
  optim::LossScaling scaling = {};
};

std::vector<Mix> mixes() {
  const optim::LossScaling scaling{.kind = optim::LossScaling::Kind::Dynamic};
  return {{{kBFloat}, {{"model.layers.[01]", {kFloat}}}},
          {{kFloat}, {{"model.layers.*", {kBFloat, kBFloat}}, {"model.layers.1", {kFloat}}}},
          {{kBFloat}, {{"model.layers.0", {kFloat, kFloat, kBFloat}}, {"root", {kFloat, kBFloat, {}, false}}}},
          {{kBFloat, kFloat, kFloat, false}, {}},
          {{kHalf}, {}, scaling},
          {{kBFloat}, {{"model.layers.1", {kHalf, kHalf}}, {"root", {kFloat}}}, scaling}};
}

}  // namespace

TEST_CASE("matrix: groups of different precision train as one rank does, and as float32 but for rounding", "[matrix]") {
  const test::TemporaryFolder folder;
  write_rows(folder / "rows.safetensors");
  const Seen whole = run_on_ranks({}, folder / "rows.safetensors").front();
  for (const Mix& mix : mixes()) {
    const Combination one{.sharding = {.policy = {.precision = mix.all}, .precision = mix.rules},
                          .scaling = mix.scaling};
    const Seen alone = run_on_ranks(one, folder / "rows.safetensors").front();
    check(one, {alone}, whole, {1e-2, 3e-2});
    for (const MeshSize mesh : {MeshSize{1, 2}, MeshSize{1, 3}, MeshSize{1, 4}, MeshSize{2, 2}, MeshSize{2, 1},
                                MeshSize{3, 1}, MeshSize{1, 4, 2}}) {
      CAPTURE(mesh.replicate, mesh.shard, mesh.post_forward, name_of(mix.all.param_dtype), mix.rules.size());
      Combination what = one;
      what.sharding.mesh = mesh;
      check(what, run_on_ranks(what, folder / "rows.safetensors"), alone, {1e-2, 1e-2});
    }
  }
}

TEST_CASE("matrix: each group is gathered and reduced in its own type", "[matrix]") {
  const test::TemporaryFolder folder;
  write_rows(folder / "rows.safetensors");
  const MeshSize mesh{1, 3};
  const Combination what{
      .sharding = {.mesh = mesh,
                   .policy = {.reshard = Reshard::AfterBackward, .precision = {kBFloat, kFloat}},
                   .precision = {{"model.layers.*", {kFloat, kBFloat}}, {"model.layers.2", {kBFloat, kBFloat}}}}};
  const auto is_block = [](const std::string& name) { return name.starts_with("model.layers."); };
  auto sent = run_on_ranks(what, folder / "rows.safetensors").front().sent;
  const auto gathered = gathered_bytes_of_a_pass(mesh, [&](const std::string& name) -> uint64_t {
    return is_block(name) && !name.starts_with("model.layers.2") ? 4 : 2;
  });
  const auto reduced =
      gathered_bytes_of_a_pass(mesh, [&](const std::string& name) -> uint64_t { return is_block(name) ? 2 : 4; });
  CHECK(sent["all_gather"] == Sent{2 * 4, 2 * gathered});
  CHECK(sent["reduce_scatter"] == Sent{2 * 4, 2 * reduced});
}

TEST_CASE("matrix: replicas sum neighbouring groups together only where these are of one precision", "[matrix]") {
  const auto labels = test::run_ranks(2, [](comm::Communicator& comm) {
    const ShardedModel sharded =
        shard_model(odd_model(), comm, {.mesh = {2, 1}, .precision = {{"model.layers.1", {kBFloat}}}});
    std::vector<std::string> seen;
    for (const auto& group : sharded.engine->groups()) seen.push_back(group->label());
    return seen;
  });
  CHECK(labels[0] == std::vector<std::string>{"model.layers.0", "model.layers.1", "model.layers.2", "root"});
}

TEST_CASE("precision: a glob that matches no group is refused with those that there are", "[matrix]") {
  const auto refusal = [](const std::string& pattern, const Wrap& wrap, int64_t layers = 3) {
    models::ModelConfig model = odd_model();
    model.layers = layers;
    return test::run_ranks(1, [&](comm::Communicator& comm) -> std::string {
      try {
        shard_model(model, comm, {.wrap = wrap, .precision = {{"root", {}}, {pattern, {kBFloat}}}});
      } catch (const std::exception& error) {
        return error.what();
      }
      return "none";
    })[0];
  };
  CHECK(refusal("model.layers.3", {}) ==
        "parallel.precision: 'model.layers.3' matches no group of this model; they are model.layers.0, model.layers.1, "
        "model.layers.2, root");
  CHECK(refusal("model.layers.*", {.policy = Wrap::Policy::None, .classes = {}}) ==
        "parallel.precision: 'model.layers.*' matches no group of this model; they are root");
  CHECK_THAT(
      refusal("model.layers.12", {}, 12),
      Catch::EndsWith("model.layers.2, model.layers.3, …, model.layers.9, model.layers.10, model.layers.11, root"));
  CHECK(refusal("*.[012]", {}) == "none");
}

TEST_CASE("matrix: frozen parameters stay as they are and have no moments", "[matrix]") {
  const MeshSize mesh = GENERATE(values<MeshSize>({{1, 1}, {1, 3}, {2, 2}, {2, 1}}));
  const auto ranks = test::run_ranks(mesh.replicate * mesh.shard, [&](comm::Communicator& comm) {
    ShardedModel sharded = shard_model(odd_model(), comm, {.mesh = mesh, .freeze = {"*.mlp.*", "lm_head*"}});
    fill_random(*sharded.engine, 3);
    optim::AdamW optimizer(*sharded.engine, {.lr = 1e-2});
    std::vector<std::vector<float>> before;
    for (const auto& shard : sharded.engine->shards())
      before.emplace_back(shard.value.values<float>().begin(), shard.value.values<float>().end());
    const Tensor ids = Tensor::zeros({1, 4}, DType::Int32);
    for (int step = 0; step < 3; ++step) {
      nn::Tape tape;
      sharded.engine->begin_micro_batch(true);
      sharded.model->loss({ids, ids}, {.gradient_scale = 1, .tape = &tape});
      tape.backward();
      sharded.engine->finish_backward();
      optimizer.step(1e-2, {});
      sharded.engine->release_gradients();
    }
    int wrong = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      const shard::ParameterShard& shard = sharded.engine->shards()[i];
      const bool is_equal = std::ranges::equal(before[i], shard.value.values<float>());
      if (shard.value.count() > 0) wrong += is_equal != shard.parameter->is_frozen();
    }
    for (const auto& moments : optimizer.moments()) wrong += moments.shard->parameter->is_frozen();
    sharded.mesh->close(std::chrono::steady_clock::now() + std::chrono::seconds(30));
    return wrong;
  });
  for (const int wrong : ranks) CHECK(wrong == 0);
}

TEST_CASE("freeze: a glob that matches nothing, and one that leaves nothing to train, are refused", "[matrix]") {
  const auto refusal = [](const std::vector<std::string>& globs) {
    return test::run_ranks(1, [&](comm::Communicator& comm) -> std::string {
      try {
        shard_model(odd_model(), comm, {.freeze = globs});
      } catch (const std::exception& error) {
        return error.what();
      }
      return "none";
    })[0];
  };
  CHECK(refusal({"model.layer.*"}) ==
        "training.freeze: 'model.layer.*' matches no parameter of this model; its first is model.embed_tokens.weight");
  CHECK(refusal({"*"}) == "training.freeze: every parameter is frozen, so there is nothing to train; name fewer");
  CHECK(refusal({"model.*"}) == "none");
}

TEST_CASE("matrix: no rank ever holds the whole model, from building to the second step", "[matrix]") {
  models::ModelConfig config = odd_model();
  config.hidden_size = 48, config.intermediate_size = 160, config.vocab_size = 300, config.layers = 12;
  const auto whole = static_cast<double>(models::parameter_count(config) * 4);
  const bool by_rank_0 = GENERATE(false, true);
  const auto held = test::run_ranks(4, [&](comm::Communicator& comm) {
    const auto ledger = std::make_shared<MemoryLedger>();
    const MemoryScope scope(ledger);
    ShardedModel sharded = shard_model(config, comm, {.mesh = {1, 4}});
    fill_random(*sharded.engine, 1, by_rank_0 ? FilledBy::Rank0 : FilledBy::EachRank);
    return ledger->peak_bytes();
  });
  for (const size_t bytes : held) CHECK(static_cast<double>(bytes) < 0.5 * whole);
}

}  // namespace trainyard::train
