#include <trainyard/trainyard.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/support.h"

// The installed library as a program of a user's sees it: its headers, and nothing below them.
namespace trainyard::fsdp {
namespace {

/// What each rank's body returns, by rank. Each writes an element of its own at the same time as the others, which the
/// packed bits of a std::vector<bool> do not allow.
template <typename Result>
std::vector<Result> on_ranks(int world, const std::function<Result(ProcessGroup&)>& body) {
  std::deque<Result> results(static_cast<size_t>(world));
  run_threads(world, [&](ProcessGroup& ranks) { results[static_cast<size_t>(ranks.rank())] = body(ranks); });
  return {results.begin(), results.end()};
}

Model sharded(ProcessGroup& ranks, const FullyShardOptions& options = {}, MeshShape shape = {}) {
  Model model = Model::preset("tutorial", 7);
  const DeviceMesh mesh(ranks, shape);
  for (const Module& layer : model.layers()) fully_shard(layer, mesh, options);
  fully_shard(model, mesh, options);
  return model;
}

/// Rows of this rank among `rows` of all.
Batch batch_of(const ProcessGroup& ranks, int64_t rows, int64_t tokens = 5) {
  Batch batch{.rows = rows / ranks.world_size(), .tokens = tokens};
  for (int64_t row = ranks.rank() * batch.rows; row < (ranks.rank() + 1) * batch.rows; ++row)
    for (int64_t t = 0; t < tokens; ++t) batch.input_ids.push_back(static_cast<int32_t>((row * 7 + t * 5) % 1024));
  return batch;
}

/// The losses of a few steps as the tutorial takes them. Its loss is a mean over ranks of sums, so that of one rank with
/// all rows is `world` times as large.
std::vector<double> train(ProcessGroup& ranks, Model& model, int steps) {
  AdamW optimizer(model, {.lr = 1e-2, .weight_decay = 0});
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    Loss loss = model.loss(batch_of(ranks, 4));
    losses.push_back(loss.item() * ranks.world_size());
    loss.backward();
    static_cast<void>(clip_grad_norm(model, 1));
    optimizer.step();
    optimizer.zero_grad();
  }
  return losses;
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("library: parameters are split by rows, say so, and come together again", "[fsdp]") {
  const auto seen = on_ranks<bool>(3, [](ProcessGroup& ranks) {
    const Model model = sharded(ranks);
    int64_t rows = 0;
    bool is_right = true;
    for (const Parameter& parameter : model.parameters()) {
      is_right = is_right && parameter.placements() == std::vector<Placement>{Placement::Shard0};
      const auto shape = parameter.shape(), local = parameter.local_shape();
      const int64_t chunk = (shape[0] + 2) / 3;
      rows = std::clamp<int64_t>(shape[0] - ranks.rank() * chunk, 0, chunk);
      is_right = is_right && local[0] == rows;
      const std::vector<float> own = parameter.to_local(), whole = parameter.full_tensor();
      const auto row = static_cast<int64_t>(whole.size()) / shape[0];
      is_right = is_right && std::equal(own.begin(), own.end(), whole.begin() + std::min(ranks.rank() * chunk, shape[0]) * row);
    }
    return is_right && model.parameters().size() > 50;
  });
  CHECK(seen == std::vector<bool>{true, true, true});
}

TEST_CASE("library: the dtypes before and after unshard() are those of the policy, group by group", "[fsdp]") {
  const auto seen = on_ranks<std::vector<DType>>(2, [](ProcessGroup& ranks) {
    Model model = Model::preset("tutorial");
    const DeviceMesh mesh(ranks);
    const MixedPrecisionPolicy bf16{.param_dtype = DType::BFloat16};
    for (const Module& layer : model.layers()) fully_shard(layer, mesh, {.mp_policy = bf16});
    fully_shard(model, mesh);  // the rest in float32
    std::vector<Module> layers = model.layers();
    const Parameter of_layer = layers[0].managed_parameters()[0], of_root = model.managed_parameters()[0];
    std::vector<DType> dtypes{of_layer.dtype()};
    layers[0].unshard();
    model.unshard();
    dtypes.push_back(of_layer.dtype());
    dtypes.push_back(of_root.dtype());
    dtypes.push_back(layers[1].managed_parameters()[0].dtype());  // not asked for
    layers[0].reshard();
    dtypes.push_back(of_layer.dtype());
    return dtypes;
  });
  const std::vector<DType> expected{DType::Float32, DType::BFloat16, DType::Float32, DType::Float32, DType::Float32};
  CHECK(seen == std::vector<std::vector<DType>>{expected, expected});
}

TEST_CASE("library: losses are those of one rank at any mesh, prefetch and reshard_after_forward", "[fsdp]") {
  const auto one = on_ranks<std::vector<double>>(1, [](ProcessGroup& ranks) {
    Model model = sharded(ranks);
    return train(ranks, model, 4);
  })[0];
  CHECK(std::set<double>(one.begin(), one.end()).size() == 4);
  const auto shape = GENERATE(values<std::pair<int, MeshShape>>({{2, {}}, {2, {-1, 1}}, {4, {2, 2}}}));
  const auto reshard = GENERATE(std::optional<bool>{}, std::optional<bool>{false}, std::optional<bool>{true});
  const auto ranks = on_ranks<std::vector<double>>(shape.first, [&](ProcessGroup& group) {
    Model model = sharded(group, {.reshard_after_forward = reshard}, shape.second);
    std::vector<Module> layers = model.layers();
    for (size_t i = 0; i + 2 < layers.size(); ++i)
      layers[i].set_modules_to_forward_prefetch({layers[i + 1], layers[i + 2]});
    for (size_t i = 2; i < layers.size(); ++i)
      layers[i].set_modules_to_backward_prefetch({layers[i - 1], layers[i - 2]});
    model.unshard_async();
    return train(group, model, 4);
  });
  for (const auto& losses : ranks)
    for (size_t step = 0; step < 4; ++step) CHECK(losses[step] == Approx(one[step]).epsilon(1e-4));
}

TEST_CASE("library: the norm of gradients is that of one rank, and they are scaled down to the limit", "[fsdp]") {
  const auto norms = [](int world) {
    return on_ranks<std::pair<double, double>>(world, [](ProcessGroup& ranks) {
      Model model = sharded(ranks);
      model.loss(batch_of(ranks, 4), ranks.world_size()).backward();
      const double before = clip_grad_norm(model, 0.5);
      return std::pair(before, clip_grad_norm(model, 1e9));
    })[0];
  };
  const auto [one, one_after] = norms(1);
  const auto [two, two_after] = norms(2);
  CHECK(two == Approx(one).epsilon(1e-4));
  CHECK(one > 0.5);
  CHECK(two_after == Approx(0.5).epsilon(1e-4));
}

TEST_CASE("library: micro-batches without a gradient sync add up to those of one batch", "[fsdp]") {
  const auto gradients = [](bool accumulates) {
    return on_ranks<std::vector<float>>(2, [accumulates](ProcessGroup& ranks) {
      Model model = sharded(ranks);
      for (int pass = 0; pass < (accumulates ? 2 : 1); ++pass) {
        model.set_requires_gradient_sync(!accumulates || pass == 1);
        model.loss(batch_of(ranks, 4), accumulates ? 0.5 : 1).backward();
      }
      return model.parameters()[0].local_gradient();
    })[1];
  };
  const std::vector<float> once = gradients(false), twice = gradients(true);
  REQUIRE(once.size() == twice.size());
  for (size_t i = 0; i < once.size(); ++i) CHECK(twice[i] == Approx(once[i]).epsilon(1e-4).margin(1e-6));
}

TEST_CASE("library: a state dict is whole on rank 0, goes through a .pt file and into another number of ranks",
          "[fsdp]") {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "model_state_dict.pt").string();
  const auto sizes = on_ranks<size_t>(3, [&](ProcessGroup& ranks) {
    Model model = sharded(ranks);
    static_cast<void>(train(ranks, model, 2));
    const StateDict state = get_model_state_dict(model);
    if (ranks.rank() == 0) save_state_dict(state, file);
    return state.size();
  });
  CHECK(sizes[0] > 50);
  CHECK(sizes[1] == 0);
  const StateDict stored = load_state_dict(file);
  const auto equal = on_ranks<bool>(2, [&](ProcessGroup& ranks) {
    Model by_rank_0 = sharded(ranks), by_each = sharded(ranks);
    set_model_state_dict(by_rank_0, ranks.rank() == 0 ? stored : StateDict{});
    load_weights(by_each, file);
    bool same = true;
    for (size_t i = 0; i < by_each.parameters().size(); ++i) {
      const Parameter each = by_each.parameters()[i];
      same = same && each.full_tensor() == stored.at(each.name()).values &&
             each.to_local() == by_rank_0.parameters()[i].to_local();
    }
    return same;
  });
  CHECK(equal == std::vector<bool>{true, true});
}

TEST_CASE("library: a checkpoint goes on where it was, with the optimizer, at another number of ranks", "[fsdp]") {
  const test::TemporaryFolder folder;
  const std::string checkpoints = (folder / "checkpoints").string();
  const auto losses_of = [&](int world, int before, int after) {
    return on_ranks<std::vector<double>>(world, [&](ProcessGroup& ranks) {
      Model model = sharded(ranks);
      AdamW optimizer(model, {.lr = 1e-2});
      std::vector<double> losses;
      const auto steps = [&](int count) {
        for (int step = 0; step < count; ++step) {
          Loss loss = model.loss(batch_of(ranks, 4), ranks.world_size());  // the same gradient at any number of them
          losses.push_back(loss.item() * ranks.world_size());
          loss.backward();
          optimizer.step();
          optimizer.zero_grad();
        }
      };
      if (before == 0) {
        const auto found = load_checkpoint(checkpoints, model, optimizer);
        if (found != 3 || optimizer.steps_done() != 3) return losses;
      }
      steps(before);
      if (before > 0) save_checkpoint(checkpoints, model, optimizer);
      steps(after);
      return losses;
    })[0];
  };
  const std::vector<double> whole = losses_of(2, 3, 2);
  REQUIRE(std::filesystem::exists(checkpoints + "/step-3/checkpoint.json"));
  CHECK(losses_of(2, 0, 2) == std::vector<double>(whole.begin() + 3, whole.end()));
  const std::vector<double> alone = losses_of(1, 0, 2);
  REQUIRE(alone.size() == 2);
  CHECK(alone[1] == Approx(whole[4]).epsilon(1e-4));
}

TEST_CASE("library: what is called too early, twice or with the wrong values says what would be right", "[fsdp]") {
  run_threads(1, [](ProcessGroup& ranks) {
    Model early = Model::preset("tutorial");
    CHECK_THAT(message_of([&] { early.unshard(); }), Catch::Contains("call fully_shard() on the model itself"));
    CHECK_THAT(message_of([&] { AdamW optimizer(early); }), Catch::Contains("call fully_shard() on the model itself"));
    Model model = sharded(ranks);
    CHECK_THAT(message_of([&] { fully_shard(model, DeviceMesh(ranks)); }), Catch::Contains("one mesh"));
    AdamW optimizer(model);
    CHECK_THAT(message_of([&] { optimizer.step(); }), Catch::Contains("call backward() first"));
    CHECK_THAT(message_of([&] { static_cast<void>(model.loss({.rows = 1, .tokens = 2, .input_ids = {1}})); }),
               Catch::Contains("1 rows of 2 tokens, but 1 input_ids"));
    CHECK_THAT(message_of([&] { static_cast<void>(model.loss({.rows = 1, .tokens = 1, .input_ids = {5000}})); }),
               Catch::Contains("token id 5000; the model knows 0 to 1023"));
    Loss loss = model.loss(batch_of(ranks, 1));
    loss.backward();
    CHECK_THAT(message_of([&] { loss.backward(); }), Catch::Contains("called already"));
    CHECK_THAT(message_of([&] { set_model_state_dict(model, {}); }), Catch::Contains("is missing"));
  });
  CHECK_THAT(message_of([] { static_cast<void>(Model::preset("tutorail")); }), Catch::Contains("did you mean 'tutorial'"));
  try {
    run_threads(2, [](ProcessGroup& ranks) { DeviceMesh mesh(ranks, {.replicate = 3, .shard = 1}); });
    CHECK(false);
  } catch (const std::exception& error) {
    CHECK_THAT(error.what(), Catch::Contains("3"));
  }
}

}  // namespace trainyard::fsdp
