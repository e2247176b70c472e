#include "shard/engine.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include "autograd/functions.h"
#include "models/model.h"
#include "nn/init.h"
#include "support/faulty_communicator.h"
#include "support/ranks.h"

namespace trainyard::shard {
namespace {

using std::chrono::milliseconds;

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
          .tied_head = true};
}

models::ModelConfig even_model() {  // of whole blocks of NF4
  models::ModelConfig config = odd_model();
  config.hidden_size = 64, config.intermediate_size = 192, config.heads = 4, config.kv_heads = 2, config.head_dim = 16;
  return config;
}

data::Batch rows_of(int64_t rows, int rank, int world) {
  std::vector<int32_t> ids, targets;
  int64_t mine = 0;
  for (int64_t row = rank; row < rows; row += world, ++mine) {
    for (int64_t t = 0; t < 11; ++t) {
      ids.push_back(static_cast<int32_t>((row * 7 + t * 5) % 37));
      targets.push_back(static_cast<int32_t>((row * 7 + (t + 1) * 5) % 37));
    }
  }
  return {Tensor::from<int32_t>(ids, {mine, 11}), Tensor::from<int32_t>(targets, {mine, 11})};
}

/// A rank's rows of each parameter of a base, by name.
using Base = std::map<std::string, std::vector<std::byte>>;

/// What one rank sees of one step: loss, gradient norm, its gradients by name and first row, and the engine's events.
struct Seen {
  double loss_sum = 0, squares = 0;
  std::map<std::string, std::vector<float>> gradients;
  std::vector<Event> events;
  size_t group_bytes = 0;  ///< of the largest group, gathered
  Base base;
  size_t base_bytes = 0;  ///< of what this rank holds of the base
  bool base_stayed = false;
};

struct Setting {
  Policy policy;
  int micro_batches = 1;
  bool recompute = false;
  bool has_base = false;  ///< all but the norms and o_proj's weights stays, with values that bfloat16 holds
  bool in_nf4 = false;    ///< of that the layers' weights, of even_model()
};

bool is_of_base(const autograd::Parameter& parameter) {
  return !parameter.name().ends_with("norm.weight") && parameter.name().find("o_proj") == std::string::npos;
}

void round_to_bfloat16(std::span<float> values) {
  for (float& value : values) value = static_cast<float>(BFloat16(value));
}

Base base_of(const Engine& engine) {
  Base base;
  for (const ParameterShard& shard : engine.shards())
    if (shard.parameter->is_base())
      base[shard.parameter->name()] = {shard.value.raw(), shard.value.raw() + shard.value.bytes()};
  return base;
}

Seen step_of(comm::Communicator& comm, MeshSize size, const Setting& setting) {
  Seen seen;
  const auto model = models::build(setting.in_nf4 ? even_model() : odd_model());
  for (autograd::Parameter* const parameter : model->parameters()) {
    if (setting.has_base && is_of_base(*parameter)) parameter->set_base();
    if (setting.in_nf4 && parameter->is_base() && parameter->name().find("_proj") != std::string::npos)
      parameter->set_nf4();
  }
  Mesh mesh(comm, size);
  Engine engine(mesh, setting.policy);
  for (nn::Module* const block : model->blocks()) block->set_recompute(setting.recompute), engine.fully_shard(*block);
  engine.fully_shard(*model);
  engine.fill([](const autograd::Parameter& p, Rows rows, std::span<float> out) {
    nn::initial_rows(p, 3, rows.begin, rows.count, out);
    if (p.is_base()) round_to_bfloat16(out);
  });
  const auto base = base_of(engine);
  for (int pass = 0; pass < 2; ++pass) {  // the second one knows the order and prefetches
    seen.events.clear();
    seen.loss_sum = 0;
    engine.release_gradients();
    engine.on_event([&](const Event& event) { seen.events.push_back(event); });
    engine.begin_step();
    for (int micro = 0; micro < setting.micro_batches; ++micro) {
      nn::Tape tape;
      engine.begin_micro_batch(micro + 1 == setting.micro_batches);
      // Micro-batch m of a rank is every micro_batches-th of its rows.
      seen.loss_sum += model
                           ->loss(rows_of(8, comm.rank() + micro * comm.world(), comm.world() * setting.micro_batches),
                                  {1.0F / 88, &tape})
                           .read()
                           .loss_sum;
      tape.backward();
    }
    engine.finish_backward();
  }
  seen.squares = engine.gradient_squares().total.values<double>()[0];
  for (const auto& group : engine.groups()) seen.group_bytes = std::max(seen.group_bytes, group->gather_bytes());
  seen.base_stayed = base_of(engine) == base;
  for (const auto& [name, bytes] : base) seen.base_bytes += bytes.size();
  seen.base = base;
  for (const ParameterShard& shard : engine.shards()) {
    if (shard.parameter->is_base()) continue;
    const auto values = shard.gradient.values<float>();
    seen.gradients[shard.parameter->name()] = {values.begin(), values.end()};
  }
  mesh.close(std::chrono::steady_clock::now() + std::chrono::seconds(30));
  return seen;
}

std::vector<Seen> run_step(MeshSize size, const Setting& setting) {
  return test::run_ranks(size.replicate * size.shard,
                         [&](comm::Communicator& comm) { return step_of(comm, size, setting); });
}

/// The gradients of all ranks of the first shard group, put together.
std::vector<float> whole_gradient(const std::vector<Seen>& ranks, int shard, const std::string& name) {
  std::vector<float> whole;
  for (int rank = 0; rank < shard; ++rank) {
    const auto& part = ranks[static_cast<size_t>(rank)].gradients.at(name);
    whole.insert(whole.end(), part.begin(), part.end());
  }
  return whole;
}

void check_equals_one_rank(const std::vector<Seen>& ranks, int shard, const Seen& one) {
  double loss_sum = 0, squares = 0;
  for (const Seen& seen : ranks) loss_sum += seen.loss_sum;
  for (int rank = 0; rank < shard; ++rank) squares += ranks[static_cast<size_t>(rank)].squares;
  CHECK(loss_sum == Approx(one.loss_sum).epsilon(1e-6));
  CHECK(std::sqrt(squares) == Approx(std::sqrt(one.squares)).epsilon(1e-5));
  for (const auto& [name, expected] : one.gradients) {
    CAPTURE(name);
    const std::vector<float> got = whole_gradient(ranks, shard, name);
    REQUIRE(got.size() == expected.size());
    double difference = 0, size = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      difference += std::pow(static_cast<double>(got[i]) - static_cast<double>(expected[i]), 2);
      size += std::pow(static_cast<double>(expected[i]), 2);
    }
    CHECK(std::sqrt(difference) <= 1e-5 * std::sqrt(size));
  }
}

void check_equals_one_rank(const std::vector<Seen>& ranks, int shard) {
  static const Seen one = run_step({1, 1}, {}).front();
  check_equals_one_rank(ranks, shard, one);
}

std::string story(const std::vector<Event>& events, Event::Kind kind) {
  std::string story;
  for (const Event& event : events)
    if (event.kind == kind)
      story +=
          (story.empty() ? "" : " ") + (event.group == "root" ? "r" : event.group.substr(event.group.rfind('.') + 1));
  return story;
}

}  // namespace

TEST_CASE("Engine: any mesh, reshard and accumulation gives the loss and gradients of one rank", "[shard]") {
  const auto size =
      GENERATE(values<MeshSize>({{1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 8}, {2, 1}, {3, 1}, {2, 2}, {2, 3}, {4, 2}}));
  const auto reshard = GENERATE(Reshard::AfterForward, Reshard::AfterBackward);
  const int micro_batches = GENERATE(1, 2);
  const bool sync_every = GENERATE(false, true);
  CAPTURE(size.replicate, size.shard, reshard, micro_batches, sync_every);
  check_equals_one_rank(run_step(size, {{.reshard = reshard, .sync_every_micro_batch = sync_every}, micro_batches}),
                        size.shard);
}

TEST_CASE("Engine: prefetch, recomputation and ranks without rows change no bit", "[shard]") {
  const MeshSize size{1, 3};
  const auto plain = run_step(size, {{.prefetch = {.forward = 0, .backward = 0}}});
  const auto other = GENERATE_COPY(values<Setting>({{},
                                                    {{.prefetch = {.forward = 2, .backward = 2}}},
                                                    {{.prefetch = {.when = BackwardPrefetch::Post}}},
                                                    {{.prefetch = {.when = BackwardPrefetch::None}}},
                                                    {{.prefetch = {.early = true}}},
                                                    {{.prefetch = {.forward = 9, .backward = 9, .most_in_flight = 0}}},
                                                    {{.prefetch = {.forward = 9, .backward = 9, .most_in_flight = 1}}},
                                                    {{}, 1, true}}));
  const auto got = run_step(size, other);
  for (size_t rank = 0; rank < got.size(); ++rank) CHECK(got[rank].gradients == plain[rank].gradients);
  check_equals_one_rank(run_step({1, 8}, {{}, 2}), 8);  // 8 rows in 16 places: half the micro-batches are empty
}

TEST_CASE("Engine: on a network slower than the computation every use waits for its gather: the same bits", "[shard][bit_equal]") {
  const auto fast = run_step({1, 2}, {});
  const auto setting = GENERATE(values<Setting>({{{.prefetch = {.forward = 0, .backward = 0}}},
                                                 {{.prefetch = {.forward = 1, .backward = 1}}},
                                                 {{.prefetch = {.forward = 3, .backward = 3}}},
                                                 {{.prefetch = {.forward = 1, .backward = 1}}, 1, true}}));
  std::vector<std::unique_ptr<comm::Communicator>> slow;
  for (auto& communicator : comm::make_in_process(2, std::chrono::seconds(60)))
    slow.push_back(
        std::make_unique<test::FaultyCommunicator>(std::move(communicator), test::Fault{.delay = milliseconds(5)}));
  const auto seen = test::run_ranks(std::move(slow), [&](comm::Communicator& comm) {
    return step_of(comm, {1, 2}, setting);
  });
  for (size_t rank = 0; rank < seen.size(); ++rank) {
    CHECK(seen[rank].loss_sum == fast[rank].loss_sum);
    CHECK(seen[rank].gradients == fast[rank].gradients);
  }
}

TEST_CASE("Engine: bfloat16 parameters stay near float32, and the shards are float32", "[shard]") {
  const auto fp32 = run_step({1, 2}, {}), bf16 = run_step({1, 2}, {{.precision = {.param_dtype = DType::BFloat16}}});
  const auto half =
      run_step({1, 2}, {{.precision = {.param_dtype = DType::BFloat16, .reduce_dtype = DType::BFloat16}}});
  CHECK(bf16[0].loss_sum + bf16[1].loss_sum == Approx(fp32[0].loss_sum + fp32[1].loss_sum).epsilon(1e-2));
  CHECK(bf16[0].squares + bf16[1].squares == Approx(fp32[0].squares + fp32[1].squares).epsilon(2e-2));
  CHECK(half[0].squares + half[1].squares == Approx(bf16[0].squares + bf16[1].squares).epsilon(2e-2));
  CHECK(half[0].squares != bf16[0].squares);
}

TEST_CASE("Engine: bfloat16 parameters with a float32 sum: what ranks add survives, summed in bfloat16 it does not",
          "[shard]") {
  struct OneProduct : nn::Module {
    OneProduct() : Module("one"), weight(add_parameter("weight", {2, 1})) {}
    nn::Variable operator()(const nn::Variable& x) {
      return run(x, [this](const nn::Variable& input) { return autograd::linear(input, weight); });
    }
    nn::Parameter& weight;
  };
  // Row 0's gradient is 256 from rank 0 and 1 from rank 1: 257 has no bfloat16.
  const auto summed = [](DType reduce_dtype) {
    return test::run_ranks(2, [&](comm::Communicator& comm) {
      OneProduct model;
      const Mesh mesh(comm, {1, 2});
      Engine engine(mesh, {.precision = {.param_dtype = DType::BFloat16, .reduce_dtype = reduce_dtype}});
      engine.fully_shard(model);
      engine.fill([](const autograd::Parameter&, Rows, std::span<float> out) { std::ranges::fill(out, 1.0F); });
      const auto bf16 = [](const Shape& shape, float value) {
        const std::vector<BFloat16> values(static_cast<size_t>(count_of(shape)), BFloat16(value));
        return Tensor::from<BFloat16>(values, shape);
      };
      nn::Tape tape;
      engine.begin_micro_batch(true);
      const nn::Variable y = model(nn::Variable(bf16({1, 1}, comm.rank() == 0 ? 256 : 1), &tape));
      y.gradient()->add(bf16({1, 2}, 1));
      tape.backward();
      engine.finish_backward();
      return engine.shards().front().gradient.values<float>()[0];
    });
  };
  CHECK(summed(DType::Float32) == std::vector<float>{257, 257});
  CHECK(summed(DType::BFloat16) == std::vector<float>{256, 256});
}

TEST_CASE("Engine: a base is kept and gathered in a dtype of its own, with the bits of one in float32", "[shard]") {
  const auto size = GENERATE(values<MeshSize>({{1, 1}, {1, 2}, {1, 3}, {2, 2}, {1, 4, 2}}));
  const auto param_dtype = GENERATE(DType::Float32, DType::BFloat16);
  const auto with = [&](std::optional<DType> base_dtype) {
    return run_step(
        size, {.policy = {.precision = {.param_dtype = param_dtype}, .base_dtype = base_dtype}, .has_base = true});
  };
  const auto in_float = with(DType::Float32), in_half = with(DType::BFloat16), by_default = with(std::nullopt);
  for (size_t rank = 0; rank < in_half.size(); ++rank) {
    CHECK(in_half[rank].gradients == in_float[rank].gradients);
    CHECK(in_half[rank].loss_sum == in_float[rank].loss_sum);
    CHECK(by_default[rank].gradients == in_float[rank].gradients);
    CHECK(2 * in_half[rank].base_bytes == in_float[rank].base_bytes);
    CHECK(by_default[rank].base_bytes == (param_dtype == DType::Float32 ? in_float : in_half)[rank].base_bytes);
    CHECK((in_half[rank].base_stayed && in_half[rank].base_bytes > 0));
    if (size.of(Dimension::Shard) > 1 && param_dtype == DType::Float32)
      CHECK(in_half[rank].group_bytes < in_float[rank].group_bytes);
  }
}

TEST_CASE("Engine: a base in NF4 has the bits of one rank on any, and so have the gradients but for rounding",
          "[shard]") {
  const Setting in_nf4{.has_base = true, .in_nf4 = true};
  static const Seen one = run_step({1, 1}, in_nf4).front();
  const auto size = GENERATE(values<MeshSize>({{1, 2}, {1, 3}, {2, 2}, {1, 4, 2}, {1, 8}}));
  const auto ranks = run_step(size, in_nf4);
  const int shard = size.of(Dimension::Shard);
  check_equals_one_rank(ranks, shard, one);
  for (const auto& [name, whole] : one.base) {
    CAPTURE(name);
    std::vector<std::byte> rows;
    for (int rank = 0; rank < shard; ++rank) {
      const auto& of_rank = ranks[static_cast<size_t>(rank)].base.at(name);
      rows.insert(rows.end(), of_rank.begin(), of_rank.end());
    }
    CHECK(rows == whole);
    if (name.ends_with("gate_proj.weight")) CHECK(whole.size() == 192 * 33);  // of 64 values a row 32 bytes and one
  }
  CHECK(std::ranges::all_of(ranks, [](const Seen& seen) { return seen.base_stayed; }));
}

TEST_CASE("Engine: groups are gathered one ahead, forward and backward, and the last block again", "[shard]") {
  const auto events = run_step({1, 2}, {}).front().events;
  CHECK(story(events, Event::Kind::Gather) == "r 0 1 2 2 1 0");
  CHECK(story(events, Event::Kind::Use) == "r 0 1 2 r 2 1 0");
  CHECK(story(events, Event::Kind::Reduce) == "2 1 0 r");
  CHECK(story(events, Event::Kind::Reshard) == "0 1 2 2 1 0 r");
  // One ahead: block 1 is asked for before block 0 is used.
  const auto at = [&](Event::Kind kind, const std::string& group) {
    return std::ranges::find_if(events, [&](const Event& e) { return e.kind == kind && e.group == group; }) -
           events.begin();
  };
  CHECK(at(Event::Kind::Gather, "model.layers.1") < at(Event::Kind::Use, "model.layers.0"));
}

TEST_CASE("Engine: SHARD_GRAD_OP gathers once, NO_SHARD never", "[shard]") {
  CHECK(story(run_step({1, 2}, {{.reshard = Reshard::AfterBackward}}).front().events, Event::Kind::Gather) ==
        "r 0 1 2");
  const auto replicas = run_step({2, 1}, {});
  for (const Event& event : replicas.front().events) CHECK(event.gathered_bytes == 0);
}

TEST_CASE("Engine: backward asks for the next group before its own computes, after it, or not ahead", "[shard]") {
  const auto told = [](BackwardPrefetch when) {
    std::string text;
    size_t most = 0;
    const auto ranks = run_step({1, 2}, {{.prefetch = {.when = when}}});
    for (const Event& event : ranks.front().events) {
      most = std::max(most, event.gathered_bytes);
      const char kind = event.kind == Event::Kind::Gather    ? 'g'
                        : event.kind == Event::Kind::Use     ? 'u'
                        : event.kind == Event::Kind::Reshard ? 'f'
                                                             : 'r';
      text += kind + (event.group == "root" ? "r " : event.group.substr(event.group.rfind('.') + 1) + " ");
    }
    return std::pair(text.substr(text.rfind("ur")), most);  // from the root's backward on
  };
  const auto [pre, most_pre] = told(BackwardPrefetch::Pre);
  const auto [post, most_post] = told(BackwardPrefetch::Post);
  const auto [none, most_none] = told(BackwardPrefetch::None);
  CHECK(pre == "ur g1 u2 f2 r2 g0 u1 f1 r1 u0 f0 r0 fr rr ");
  CHECK(post == "ur g2 u2 f2 g1 r2 u1 f1 g0 r1 u0 f0 r0 fr rr ");
  CHECK(none == "ur g2 u2 f2 r2 g1 u1 f1 r1 g0 u0 f0 r0 fr rr ");
  CHECK(most_none <= most_post);
  CHECK(most_post <= most_pre);
}

TEST_CASE("Engine: two ahead hold the root and three blocks", "[shard]") {
  const auto ranks = run_step({1, 2}, {{.prefetch = {.forward = 2, .backward = 2}}});
  const auto& events = ranks.front().events;
  CHECK(story(events, Event::Kind::Gather) == "r 0 1 2 2 1 0");
  size_t most = 0;
  for (const Event& event : events) most = std::max(most, event.gathered_bytes);
  const int64_t block = (models::parameter_count(odd_model()) - 37 * 13 - 13) / 3, root = 37 * 13 + 13;
  CHECK(most <= static_cast<size_t>(root + 3 * block + 300) * 4);
  CHECK(most >= static_cast<size_t>(root + 3 * block) * 4);
}

TEST_CASE("Engine: a step's first gathers begin before its data is there where they are asked for early", "[shard]") {
  const auto first_of = [](bool early) {
    return test::run_ranks(2, [early](comm::Communicator& comm) {
      const auto model = models::build(odd_model());
      const Mesh mesh(comm, {1, 2});
      Engine engine(mesh, {.prefetch = {.early = early}});
      engine.fully_shard(*model);
      engine.fill([](const autograd::Parameter&, Rows, std::span<float> out) { std::ranges::fill(out, 0.1F); });
      int gathered = 0;
      engine.on_event([&](const Event& event) { gathered += event.kind == Event::Kind::Gather; });
      engine.begin_step();
      comm.barrier();  // what is under way ends while there are the tensors that peers read
      return gathered;
    })[0];
  };
  CHECK(first_of(true) == 1);
  CHECK(first_of(false) == 0);
}

TEST_CASE("Engine: after forward a copy may stay split over fewer ranks, which alone gather for backward", "[shard]") {
  const auto full = run_step({1, 4}, {}), part = run_step({1, 4, 2}, {});
  CHECK(story(part[0].events, Event::Kind::Gather) == "r 0 1 2 2 1 0");
  size_t first = 0, again = 0;
  for (const Event& event : part[0].events)
    if (event.kind == Event::Kind::Gather && event.group != "root")
      (first < 3 * part[0].group_bytes ? first : again) += event.message_bytes;
  CHECK(again > 0);
  CHECK(again < first);  // less padding, and half of it is a rank's own
  for (size_t rank = 0; rank < part.size(); ++rank) CHECK(part[rank].gradients == full[rank].gradients);
}

TEST_CASE("Engine: groups that are named by hand are gathered ahead in place of the next, and one keeps its own", "[shard]") {
  const auto gathered = test::run_ranks(2, [](comm::Communicator& comm) {
    const auto model = models::build(odd_model());
    const Mesh mesh(comm, {1, 2});
    Engine engine(mesh, {});
    const std::vector<nn::Module*> blocks = model->blocks();
    engine.fully_shard(*blocks[0], {.reshard = Reshard::AfterBackward});
    engine.fully_shard(*blocks[1]), engine.fully_shard(*blocks[2]), engine.fully_shard(*model);
    engine.fill([](const autograd::Parameter&, Rows, std::span<float> out) { std::ranges::fill(out, 0.1F); });
    const auto group = [&](size_t block) { return engine.group_of(*blocks[block]); };
    engine.set_forward_prefetch(*group(0), {group(2), group(1)});
    engine.set_backward_prefetch(*group(2), {});
    std::vector<Event> events;
    engine.on_event([&](const Event& event) { events.push_back(event); });
    nn::Tape tape;
    engine.begin_micro_batch(true);
    static_cast<void>(model->loss(rows_of(2, 0, 1), {1, &tape}));
    tape.backward();
    engine.finish_backward();
    return story(events, Event::Kind::Gather);
  });
  CHECK(gathered == std::vector<std::string>(2, "r 0 2 1 2 1"));
}

TEST_CASE("Engine: a group is unsharded and resharded by hand, in the dtype of its precision", "[shard]") {
  const auto seen = test::run_ranks(2, [](comm::Communicator& comm) {
    const auto model = models::build(odd_model());
    const Mesh mesh(comm, {1, 2});
    Engine engine(mesh, {});
    engine.fully_shard(*model->blocks()[1], {.precision = MixedPrecision{.param_dtype = DType::BFloat16}});
    engine.fully_shard(*model);
    engine.fill([](const autograd::Parameter&, Rows, std::span<float> out) { std::ranges::fill(out, 0.5F); });
    Group& group = *engine.group_of(*model->blocks()[1]);
    engine.begin_unshard(group);
    const bool waits = !group.is_unsharded();
    engine.unshard(group);
    const Tensor& value = group.layout().pieces.front().parameter->value();
    const bool is_there = group.is_unsharded() && value.dtype() == DType::BFloat16 &&
                          static_cast<float>(value.values<BFloat16>().back()) == 0.5F;
    engine.reshard(group);
    return waits && is_there && group.is_sharded() && engine.group_of(*model->blocks()[0]) == nullptr;
  });
  CHECK(seen == std::vector<bool>{true, true});
}

TEST_CASE("Engine: rank 0's values reach every rank's rows, and nobody else is asked", "[shard]") {
  const auto size = GENERATE(values<MeshSize>({{1, 3}, {2, 2}, {3, 1}}));
  const auto seen = test::run_ranks(size.replicate * size.shard, [&](comm::Communicator& comm) {
    const auto model = models::build(odd_model());
    const Mesh mesh(comm, size);
    Engine engine(mesh, {});
    engine.fully_shard(*model);
    int asked = 0;
    engine.fill_from_rank_0([&](const autograd::Parameter& p, Rows rows, std::span<float> out) {
      ++asked;
      nn::initial_rows(p, 5, rows.begin, rows.count, out);
    });
    int wrong = 0;
    for (const ParameterShard& shard : engine.shards()) {
      std::vector<float> expected(static_cast<size_t>(shard.value.count()));
      nn::initial_rows(*shard.parameter, 5, shard.rows.begin, shard.rows.count, expected);
      wrong += !std::ranges::equal(expected, shard.value.values<float>());
    }
    return std::pair(asked, wrong);
  });
  for (size_t rank = 0; rank < seen.size(); ++rank) {
    CHECK((seen[rank].first > 0) == (rank == 0));
    CHECK(seen[rank].second == 0);
  }
}

TEST_CASE("Engine: gathered bytes never exceed the root and two blocks", "[shard]") {
  const int64_t block = (models::parameter_count(odd_model()) - 37 * 13 - 13) / 3, root = 37 * 13 + 13;
  size_t most = 0;
  const auto ranks = run_step({1, 2}, {});
  for (const Event& event : ranks.front().events) most = std::max(most, event.gathered_bytes);
  // A gather's buffer is padded to even rows: a few rows more than the parameters.
  CHECK(most <= static_cast<size_t>(root + 2 * block + 200) * 4);
  CHECK(most >= static_cast<size_t>(root + 2 * block) * 4);
}

TEST_CASE("Engine: what a rank holds at rest is its part of the model", "[shard]") {
  models::ModelConfig config = odd_model();
  config.hidden_size = 64, config.intermediate_size = 160, config.vocab_size = 256, config.head_dim = 16;
  const auto parameter_bytes = static_cast<double>(models::parameter_count(config) * 4);
  const int world = GENERATE(1, 2, 4);
  const auto held = test::run_ranks(world, [&](comm::Communicator& comm) {
    const auto ledger = std::make_shared<MemoryLedger>();
    const MemoryScope scope(ledger);
    const auto model = models::build(config);
    const Mesh mesh(comm, {1, comm.world()});
    Engine engine(mesh, {});
    engine.fully_shard(*model);
    return ledger->held_bytes();
  });
  for (const size_t bytes : held) CHECK(static_cast<double>(bytes) == Approx(parameter_bytes / world).epsilon(0.02));
}

}  // namespace trainyard::shard
