// Groups of different precision against PyTorch's FSDP2 with a MixedPrecisionPolicy of its own for each: the numbers of
// reference/mixed_precision.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include "assemble/sharded_model.h"
#include "autograd/functions.h"
#include "base/files.h"
#include "ops/cast.h"
#include "ops/norm.h"
#include "parity_case.h"
#include "support/ranks.h"
#include "support/support.h"

namespace trainyard::test {
namespace {

using nlohmann::json;

constexpr int64_t kTokens = 3, kWidth = 4;
constexpr int kBlocks = 3, kWorld = 2;

const json& reference() {
  static const json parsed = json::parse(read_file(reference_folder() / "mixed_precision.json", 1 << 20));
  return parsed;
}

DType dtype_named(const std::string& name) {
  for (const DType dtype : kDTypes)
    if (name_of(dtype) == name) return dtype;
  throw std::logic_error(name);
}

shard::MixedPrecision precision_of(const json& policy) {
  shard::MixedPrecision precision{.param_dtype = dtype_named(policy.at(0)),
                                  .reduce_dtype = dtype_named(policy.at(1)),
                                  .cast_forward_inputs = policy.at(3).get<bool>()};
  if (!policy.at(2).is_null()) precision.output_dtype = dtype_named(policy.at(2));
  return precision;
}

/// Multiples of 1/1024 below 1 that bfloat16 has to round.
float formula(int64_t index, int64_t seed) {
  return static_cast<float>((index * 379 + seed * 131) % 1021 - 510) / 1024;
}

Tensor formula_tensor(int64_t seed) {
  Tensor tensor = Tensor::empty({kTokens, kWidth}, DType::Float32);
  for (int64_t i = 0; i < tensor.count(); ++i) tensor.values<float>()[static_cast<size_t>(i)] = formula(i, seed);
  return tensor;
}

Tensor in_dtype(const Tensor& tensor, DType dtype) {
  Tensor other = Tensor::empty(tensor.shape(), dtype);
  ops::cast(tensor, other);
  return other;
}

std::vector<float> floats(const Tensor& tensor) {
  const Tensor values = in_dtype(tensor, DType::Float32);
  return {values.values<float>().begin(), values.values<float>().end()};
}

/// x + W x.
class Block : public nn::Module {
 public:
  explicit Block(int number)
      : Module("blocks." + std::to_string(number)), weight_(add_parameter("weight", {kWidth, kWidth})) {}
  nn::Variable operator()(const nn::Variable& x) const {
    return run(x, [this](const nn::Variable& in) { return autograd::add(in, autograd::linear(in, weight_)); });
  }

 private:
  nn::Parameter& weight_;
};

class Chain : public nn::Module {
 public:
  Chain()
      : Module(""), first_(add_parameter("first", {kWidth, kWidth})), last_(add_parameter("last", {kWidth, kWidth})) {
    for (int i = 0; i < kBlocks; ++i) add_child(*blocks_.emplace_back(std::make_unique<Block>(i)));
  }
  nn::Variable operator()(const nn::Variable& x) const {
    return run(x, [this](const nn::Variable& in) {
      nn::Variable h = autograd::linear(in, first_);
      for (const auto& block : blocks_) h = (*block)(h);
      return autograd::linear(h, last_);
    });
  }
  [[nodiscard]] const std::vector<std::unique_ptr<Block>>& blocks() const { return blocks_; }

 private:
  nn::Parameter &first_, &last_;
  std::vector<std::unique_ptr<Block>> blocks_;
};

int64_t seed_of(const std::string& name) {
  if (name == "first" || name == "last") return name == "first" ? 10 : 11;
  return name[std::string("blocks.").size()] - '0' + 1;
}

/// As the reference writes it.
struct Computed {
  std::vector<float> output, input_gradient;
  std::map<std::string, std::vector<float>> gradients;  ///< this rank's rows
};

Computed compute(comm::Communicator& world, const json& policies, bool recompute) {
  Chain chain;
  const shard::Mesh mesh(world, {1, world.world()});
  shard::Engine engine(mesh, {});
  for (int i = 0; i < kBlocks; ++i) {
    Block& block = *chain.blocks()[static_cast<size_t>(i)];
    block.set_recompute(recompute);
    engine.fully_shard(block, {precision_of(policies.at(static_cast<size_t>(i)))});
  }
  engine.fully_shard(chain, {precision_of(policies.back())});
  engine.fill([](const autograd::Parameter& parameter, Rows rows, std::span<float> out) {
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = formula(rows.begin * kWidth + static_cast<int64_t>(i), seed_of(parameter.name()));
  });
  nn::Tape tape;
  engine.begin_micro_batch(true);
  const nn::Variable x(formula_tensor(20), &tape);
  const nn::Variable y = chain(x);
  y.gradient()->add(in_dtype(formula_tensor(21), y.value().dtype()));
  tape.backward();
  engine.finish_backward();
  Computed computed{floats(y.value()), floats(x.gradient()->take()), {}};
  for (const shard::ParameterShard& shard : engine.shards())
    computed.gradients[shard.parameter->name()] = floats(shard.gradient);
  return computed;
}

std::vector<float> rounded(std::vector<float> values, DType dtype) {
  const auto count = static_cast<int64_t>(values.size());
  return floats(in_dtype(Tensor::from<float>(values, {count}), dtype));
}

}  // namespace

TEST_CASE("mixed precision: each cast at the border of a group is where FSDP2 has it", "[parity]") {
  const json& expected = GENERATE(from_range(reference().at("chains").begin(), reference().at("chains").end()));
  const bool recompute = GENERATE(false, true);
  const json& policies = expected.at("policies");
  CAPTURE(policies.dump(), recompute);
  const auto ranks = run_ranks(kWorld, [&](comm::Communicator& world) { return compute(world, policies, recompute); });
  const auto near = [](const std::vector<float>& seen, const json& wanted) {
    return relative_l2(seen, wanted.get<std::vector<float>>()) < 1e-6;  // float32 products add up in another order
  };
  CHECK(near(ranks[0].output, expected.at("output")));
  CHECK(near(ranks[0].input_gradient, expected.at("input_gradient")));
  for (const auto& [name, wanted] : expected.at("gradients").items()) {
    CAPTURE(name);
    std::vector<float> sum = ranks[0].gradients.at(name);  // of both ranks, which have the same rows
    sum.insert(sum.end(), ranks[1].gradients.at(name).begin(), ranks[1].gradients.at(name).end());
    for (float& value : sum) value /= kWorld;
    // FSDP2 has a rank's gradient in param_dtype before it is cast for the reduction; ours adds up in reduce_dtype.
    const size_t group = name.starts_with("blocks.") ? static_cast<size_t>(seed_of(name) - 1) : kBlocks;
    CHECK(near(rounded(sum, dtype_named(policies.at(group).at(0))), wanted));
  }
}

namespace {

/// The row of this rank.
data::Batch row_of(const data::Batch& all, int rank) {
  const auto row = [rank](const Tensor& tensor) { return tensor.defined() ? tensor.rows(rank, 1) : tensor; };
  data::Batch own{row(all.input_ids), row(all.targets), row(all.position_ids)};
  own.input_lengths = row(all.input_lengths);
  return own;
}

/// What one rank sees of a step.
struct Step {
  double loss_sum = 0;
  std::map<std::string, double> squares;  ///< Σ gradient² of its rows, by parameter
};

train::ShardedModel load(comm::Communicator& world, const ParityCase& parity, const json& policies) {
  train::Sharding sharding{.mesh = {1, world.world()}};
  const auto model = models::build(parity.config);
  const auto blocks = model->blocks();
  for (size_t i = 0; i < blocks.size(); ++i)
    sharding.precision.push_back({blocks[i]->name(), precision_of(policies.at(i))});
  sharding.precision.push_back({"root", precision_of(policies.back())});
  train::ShardedModel sharded = train::shard_model(parity.config, world, sharding);
  train::fill_from_weights(sharded, {parity.folder});
  return sharded;
}

Step step_of(comm::Communicator& world, const ParityCase& parity, const json& policies) {
  const train::ShardedModel sharded = load(world, parity, policies);
  const auto valid = parity.expected.at("valid_tokens").get<float>();
  nn::Tape tape;
  sharded.engine->begin_micro_batch(true);
  Step step{sharded.model->loss(row_of(parity.batch(), world.rank()), {1 / valid, &tape}).read().loss_sum / valid, {}};
  tape.backward();
  sharded.engine->finish_backward();
  for (const shard::ParameterShard& shard : sharded.engine->shards())
    step.squares[shard.parameter->name()] = ops::sums_of_squares({&shard.gradient, 1}).total.values<double>()[0];
  return step;
}

std::vector<int32_t> ids_of(const Tensor& tensor, int64_t count) {
  const auto ids = tensor.values<int32_t>();
  return {ids.begin(), ids.begin() + count};
}

/// How far logits of a text that goes on token by token are from those of the whole: the worst of three tokens.
double distance_of_continuation(models::LanguageModel& model, const data::Batch& row) {
  const int64_t vocab = model.config().vocab_size, tokens = row.targets.size(1);
  const Tensor whole = model.logits(row).reshape({tokens, vocab});
  const bool continues = model.continues_prompt();
  const int64_t prompt = continues ? 7 : row.input_lengths.values<int32_t>()[0];
  const std::vector<int32_t> further = ids_of(continues ? row.input_ids : row.targets, 10);
  const auto texts = model.begin({ids_of(row.input_ids, prompt)}, 5);
  double worst = 0;
  std::vector<int32_t> next = texts->opening();
  for (int64_t t = continues ? prompt - 1 : 0, end = t + 3; t < end; ++t) {
    worst = std::max(worst, relative_l2(floats(texts->next(next)), floats(whole.rows(t, 1))));
    next = {further[static_cast<size_t>(continues ? t + 1 : t)]};
  }
  return worst;
}

}  // namespace

TEST_CASE("mixed precision: models with blocks of their own types follow FSDP2", "[parity]") {
  if (test_data().empty()) return skip("no reference data");
  const json& expected = GENERATE(from_range(reference().at("models").begin(), reference().at("models").end()));
  const ParityCase parity = load_case(expected.at("case"));
  CAPTURE(expected.at("case"), expected.at("policies").dump());
  const auto ranks =
      run_ranks(kWorld, [&](comm::Communicator& world) { return step_of(world, parity, expected.at("policies")); });
  CHECK(ranks[0].loss_sum + ranks[1].loss_sum == Approx(expected.at("loss").get<double>()).epsilon(1e-3));
  for (const auto& [name, norm] : expected.at("norms").items()) {
    CAPTURE(name);
    CHECK(std::sqrt(ranks[0].squares.at(name) + ranks[1].squares.at(name)) == Approx(norm.get<double>()).epsilon(2e-2));
  }
}

TEST_CASE("mixed precision: a text that is continued holds keys and values in the type of each block", "[parity]") {
  if (test_data().empty()) return skip("no reference data");
  const json& expected = GENERATE(from_range(reference().at("models").begin(), reference().at("models").end()));
  const ParityCase parity = load_case(expected.at("case"));
  CAPTURE(expected.at("case"), expected.at("policies").dump());
  const auto worst = run_ranks(1, [&](comm::Communicator& world) {
    const train::ShardedModel sharded = load(world, parity, expected.at("policies"));
    return distance_of_continuation(models::language_model(*sharded.model), row_of(parity.batch(), 0));
  })[0];
  CHECK(worst < 2e-2);  // bfloat16
}

}  // namespace trainyard::test
