// A model around which tensor parallelism is put is the model that it was: on any number of ranks the same loss, and
// the same gradients of what each rank has, with as many exchanges as docs/strategies.md says.
#include "tensor_parallel/parallelize.h"

#include <catch2/catch.hpp>

#include <map>
#include <mutex>

#include "models/family.h"
#include "models/language_model.h"
#include "nn/init.h"
#include "support/ranks.h"
#include "support/support.h"
#include "tensor_parallel/functions.h"

namespace trainyard::tensor_parallel {
namespace {

using autograd::Parameter;

models::ModelConfig decoder_of(const std::string& family, int64_t heads, int64_t kv_heads) {
  return {.family = family,
          .vocab_size = 31,
          .hidden_size = 24,
          .intermediate_size = 37,
          .layers = 2,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = 4,
          .max_positions = 64,
          .tied_head = false};
}

models::ModelConfig t5(double dropout, bool is_gated) {
  models::ModelConfig config = decoder_of("t5", 4, 4);
  config.dropout = dropout;
  config.rope_theta = 0;
  config.t5 = {.decoder_layers = 2, .buckets = 8, .max_distance = 16, .is_gated = is_gated};
  return config;
}

/// Two rows of seven tokens, some of them without a target; of a T5 sources of five.
data::Batch batch_of(const models::ModelConfig& config) {
  const bool has_source = config.family == "t5";
  std::vector<int32_t> ids, targets;
  for (int32_t i = 0; i < (has_source ? 10 : 14); ++i) ids.push_back((i * 7 + 3) % 31);
  for (int32_t i = 0; i < 14; ++i) targets.push_back(i % 5 == 1 ? data::kIgnored : (i * 11 + 2) % 31);
  data::Batch batch{.input_ids = Tensor::from<int32_t>(ids, {2, has_source ? 5 : 7}),
                    .targets = Tensor::from<int32_t>(targets, {2, 7})};
  batch.sequences = {3, 4};
  if (has_source) batch.input_lengths = Tensor::from<int32_t>(std::vector<int32_t>{5, 3}, {2});
  return batch;
}

/// Each parameter with the rows and columns that a rank has of its first values, all drawn from its name.
void place(nn::Module& model) {
  nn::place_whole(model);
  for (Parameter* const parameter : model.parameters()) {
    const Shape& whole = parameter->whole_shape();
    std::vector<float> values(static_cast<size_t>(count_of(whole)));
    nn::initial_rows(*parameter, 5, 0, whole[0], values);
    const int64_t columns = count_of(whole) / whole[0], own = parameter->count() / parameter->shape()[0];
    const int64_t row = parameter->part().dimension == 0 ? parameter->part().begin : 0,
                  column = parameter->part().dimension == 1 ? parameter->part().begin : 0;
    Tensor here = parameter->value();
    for (int64_t i = 0; i < parameter->count(); ++i)
      here.data<float>()[i] = values[static_cast<size_t>((row + i / own) * columns + column + i % own)];
  }
}

struct Seen {
  double loss = 0;
  std::map<std::string, std::vector<double>> gradients;  ///< whole, by name
  std::vector<float> logits;
};

/// The gradient of a whole parameter, from those of all ranks: each element from the first that counts it, and sums of
/// what are parts of one.
void add_gradient(const Parameter& parameter, const Tensor& gradient, std::vector<double>& whole) {
  const Shape& shape = parameter.whole_shape();
  const autograd::Part& part = parameter.part();
  const int64_t columns = count_of(shape) / shape[0],
                own = parameter.count() / std::max<int64_t>(parameter.shape()[0], 1);
  whole.resize(static_cast<size_t>(count_of(shape)));
  for (int64_t i = 0; i < parameter.count(); ++i) {
    if (!part.is_partial_gradient && i / own < part.shared) continue;
    const int64_t row = i / own + (part.dimension == 0 ? part.begin : 0),
                  column = i % own + (part.dimension == 1 ? part.begin : 0);
    whole[static_cast<size_t>(row * columns + column)] += static_cast<double>(gradient.data<float>()[i]);
  }
}

std::vector<float> elements_of(const Tensor& tensor) {
  return {tensor.values<float>().begin(), tensor.values<float>().end()};
}

Seen run(const models::ModelConfig& config, int ranks, const Options& options,
         std::vector<comm::CollectiveRecord>* records = nullptr) {
  Seen seen;
  std::mutex mutex;
  const std::vector<double> losses = test::run_ranks(ranks, [&](comm::Communicator& comm) {
    const auto model = models::build(config);
    if (ranks > 1) {
      parallelize(*model, models::family_of(config).placements, {config.heads, config.kv_heads, config.head_dim}, comm,
                  options);
      models::language_model(*model).set_output_head(make_output_head(comm, config.vocab_size, options));
    }
    place(*model);
    if (records && comm.rank() == 0)
      comm.on_collective([&](const comm::CollectiveRecord& record) {
        const std::lock_guard lock(mutex);
        records->push_back(record);
      });
    nn::Tape tape;
    const models::Inputs inputs = model->inputs(batch_of(config));
    const ops::Loss loss = model->loss(inputs, {.gradient_scale = 0.5F, .tape = &tape, .dropout_seed = 11});
    tape.backward();
    const Tensor logits = models::language_model(*model).logits(batch_of(config));
    const std::lock_guard lock(mutex);
    if (comm.rank() == 0) seen.logits = elements_of(logits);
    for (Parameter* const parameter : model->parameters())
      add_gradient(*parameter, parameter->gradient(), seen.gradients[parameter->name()]);
    return double{loss.read().loss_sum};
  });
  seen.loss = losses[0];
  for (const double loss : losses) CHECK(loss == Approx(seen.loss));
  return seen;
}

/// ‖seen − expected‖ / ‖expected‖.
double relative_difference(const std::vector<double>& seen, const std::vector<double>& expected) {
  double difference = 0, size = 1e-12;
  for (size_t i = 0; i < seen.size(); ++i) {
    difference += (seen[i] - expected[i]) * (seen[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return std::sqrt(difference / size);
}

void check_like_one_rank(const models::ModelConfig& config, int ranks, const Options& options) {
  const Seen one = run(config, 1, options), split = run(config, ranks, options);
  CHECK(split.loss == Approx(one.loss).epsilon(1e-5));
  REQUIRE(split.logits.size() == one.logits.size());
  for (size_t i = 0; i < one.logits.size(); ++i) CHECK(split.logits[i] == Approx(one.logits[i]).margin(1e-4));
  for (const auto& [name, expected] : one.gradients) {
    CAPTURE(name);
    REQUIRE(split.gradients.at(name).size() == expected.size());
    CHECK(relative_difference(split.gradients.at(name), expected) < 1e-4);
  }
}

}  // namespace

TEST_CASE("tensor parallel: loss, logits and every gradient are one rank's, however heads share keys and values",
          "[tensor_parallel]") {
  const Options options = GENERATE(Options{}, Options{.sequence_parallel = false}, Options{.loss_parallel = false},
                                   Options{.is_async = true});
  const std::string family = GENERATE("llama", "qwen2", "qwen3");
  CAPTURE(family, options.sequence_parallel, options.loss_parallel);
  check_like_one_rank(decoder_of(family, 6, 2), GENERATE(2, 3, 6), options);  // two ranks need parts of a group
  check_like_one_rank(decoder_of(family, 4, 4), 4, options);
  check_like_one_rank(decoder_of(family, 8, 1), 8, options);
}

TEST_CASE("tensor parallel: the padding row is one rank's, on whichever rank it lies", "[tensor_parallel]") {
  models::ModelConfig config = decoder_of("qwen3", 6, 2);
  config.pad_token_id = GENERATE(3, 17, -3);  // all three are in the batch
  config.tied_head = GENERATE(false, true);
  const Options options = GENERATE(Options{}, Options{.sequence_parallel = false});
  check_like_one_rank(config, GENERATE(2, 3), options);
}

TEST_CASE("tensor parallel: T5 with both of its stacks, its biases by position and its dropout is one rank's",
          "[tensor_parallel]") {
  const bool splits_tokens = GENERATE(true, false);
  const double dropout = GENERATE(0.0, 0.3);
  check_like_one_rank(t5(dropout, GENERATE(true, false)), GENERATE(2, 4),
                      {.sequence_parallel = splits_tokens, .is_async = splits_tokens && GENERATE(true, false)});
}

TEST_CASE("tensor parallel: a step exchanges what the formulas say", "[tensor_parallel]") {
  const bool splits_tokens = GENERATE(true, false);
  std::vector<comm::CollectiveRecord> records;
  run(decoder_of("llama", 4, 2), 2, {.sequence_parallel = splits_tokens}, &records);
  std::map<std::string, int> counts;
  for (const comm::CollectiveRecord& record : records) {
    if (record.label == "logits") break;
    ++counts[record.name];
  }
  constexpr int kLayers = 2, kPasses = 2;  // forward and backward; logits() goes forward once more
  const auto counted = [&](const std::string& name) { return counts[name]; };
  if (splits_tokens) {
    // Forward a layer gathers twice and scatters twice, and so does backward; the embedding scatters, the head gathers,
    // and each has its counterpart in backward; one gather of sums for the loss.
    CHECK(counted("all_gather") == 2 * kLayers * (kPasses + 1) + 2 + 1 + 1);
    CHECK(counted("reduce_scatter") == 2 * kLayers * (kPasses + 1) + 2 + 1);
    CHECK(counted("all_reduce") == 0);
  } else {
    CHECK(counted("all_reduce") == 2 * kLayers * (kPasses + 1) + 2 + 1);  // the embedding forward, the head backward
    CHECK(counted("all_gather") == 1);
    CHECK(counted("reduce_scatter") == 0);
  }
}

TEST_CASE(
    "tensor parallel: exchanges in parts give the same bits, or where a product's kernel depends on its height, all "
    "but a rounding",
    "[tensor_parallel][bit_equal]") {
  const int ranks = GENERATE(2, 4);
  const models::ModelConfig config = decoder_of("qwen3", 8, 2);
  const Seen plain = run(config, ranks, {}), parts = run(config, ranks, {.is_async = true});
  CHECK(parts.loss == Approx(plain.loss).epsilon(1e-6));
  for (const auto& [name, expected] : plain.gradients) {
    CAPTURE(name);
    CHECK(relative_difference(parts.gradients.at(name), expected) < 1e-5);
  }
}

TEST_CASE("tensor parallel: a rank has its heads, its width and its part of the vocabulary", "[tensor_parallel]") {
  const auto shapes = test::run_ranks(4, [](comm::Communicator& comm) {
    const models::ModelConfig config = decoder_of("qwen3", 8, 2);
    const auto model = models::build(config);
    parallelize(*model, models::family_of(config).placements, {8, 2, 4}, comm, {});
    std::map<std::string, std::pair<Shape, autograd::Part>> seen;
    for (const Parameter* const parameter : model->parameters())
      seen[parameter->name()] = {parameter->shape(), parameter->part()};
    return seen;
  });
  const std::string attention = "model.layers.1.self_attn.", mlp = "model.layers.1.mlp.";
  const auto shape = [&](int rank, const std::string& name) {
    return shapes[static_cast<size_t>(rank)].at(name).first;
  };
  const auto part = [&](int rank, const std::string& name) {
    return shapes[static_cast<size_t>(rank)].at(name).second;
  };
  CHECK(shape(3, attention + "q_proj.weight") == Shape{8, 24});
  CHECK(shape(3, attention + "k_proj.weight") == Shape{4, 24});
  CHECK(part(1, attention + "k_proj.weight") == autograd::Part{0, 0, 4, true});  // which rank 0 has too
  CHECK(part(2, attention + "k_proj.weight") == autograd::Part{0, 4, 0, true});
  CHECK(shape(1, attention + "o_proj.weight") == Shape{24, 8});
  CHECK(part(1, attention + "o_proj.weight") == autograd::Part{1, 8, 0, false});
  CHECK(part(1, attention + "q_norm.weight") == autograd::Part{0, 0, 4, true});
  CHECK(shape(0, mlp + "up_proj.weight") == Shape{10, 24});
  CHECK(shape(3, mlp + "up_proj.weight") == Shape{7, 24});
  CHECK(shape(3, mlp + "down_proj.weight") == Shape{24, 7});
  CHECK(shape(3, "model.embed_tokens.weight") == Shape{7, 24});
  CHECK(shape(3, "lm_head.weight") == Shape{7, 24});
  CHECK(shape(3, "model.norm.weight") == Shape{24});
}

TEST_CASE("tensor parallel: pieces of tokens come back in their order, whatever ranks do not divide",
          "[tensor_parallel]") {
  struct Pieces {
    Shape shape;
    float first;
    std::vector<float> whole, gradient;
  };
  const std::vector<float> tokens{1, 2, 3, 4, 5, 6, 7, 8};
  const auto seen = test::run_ranks(3, [&](comm::Communicator& comm) {
    autograd::Tape tape;
    const Variable x(Tensor::from<float>(tokens, {4, 2}), &tape);
    const Variable piece = scatter_token_sums(comm, x, "sums");
    const Variable whole = autograd::first_rows(gather_tokens(comm, piece, "tokens"), 4);
    static_cast<void>(autograd::sum(whole, 2));
    tape.backward();
    return Pieces{piece.value().shape(), piece.value().values<float>()[0], elements_of(whole.value()),
                  elements_of(x.gradient()->take())};
  });
  // Four tokens are two pieces of two. The third rank's piece is padding.
  const std::vector<float> first{3 * 1, 3 * 5, 0};
  for (size_t rank = 0; rank < seen.size(); ++rank) {
    CHECK(seen[rank].shape == Shape{2, 2});
    CHECK(seen[rank].first == first[rank]);
    for (size_t i = 0; i < tokens.size(); ++i) CHECK(seen[rank].whole[i] == 3 * tokens[i]);
    CHECK(seen[rank].gradient == std::vector<float>(tokens.size(), 6));
  }
}

}  // namespace trainyard::tensor_parallel
