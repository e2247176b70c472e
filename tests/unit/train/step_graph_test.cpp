// Steps as one graph of the device's work beside the same steps without.
#include "train/step_graph.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "rendezvous/memory_store.h"
#include "small_run.h"
#include "support/support.h"
#include "tiny_model.h"

namespace trainyard::train {
namespace {

using trainyard::test::skip;

constexpr BatchShape kSmall{.rows = 2, .tokens = 7};

struct Changed {
  std::string name;
  std::function<void(config::Config&)> change;
  models::ModelConfig model = test::tiny_model();
  BatchShape batch = kSmall;
};

models::ModelConfig model_for_cudnn() {
  models::ModelConfig model = test::tiny_model();
  model.head_dim = 8, model.max_positions = 64;
  return model;
}

models::ModelConfig small_tutorial() {
  models::ModelConfig model = models::preset("tutorial");
  model.vocab_size = 19, model.layers = 2;
  return model;
}

std::vector<Changed> runs() {
  const auto in_bfloat16 = [](config::Config& c) { c.parallel.param_dtype = config::Precision::BFloat16; };
  return {
      {"plain", [](config::Config&) {}},
      {"accumulated", [](config::Config& c) { c.training.accumulation_steps = 2; }},
      {"recomputed", [](config::Config& c) { c.activation_checkpointing.mode = config::CheckpointingMode::Selective; }},
      {"bfloat16, gathered early",
       [=](config::Config& c) {
         in_bfloat16(c);
         c.parallel.unshard_early = true;
       }},
      {"reduced in bfloat16, each micro-batch",
       [=](config::Config& c) {
         in_bfloat16(c);
         c.parallel.reduce_dtype = config::Precision::BFloat16;
         c.training.sync_every_micro_batch = true;
         c.training.accumulation_steps = 2;
       }},
      {"float16, whose scale falls and grows",
       [](config::Config& c) {
         c.parallel.param_dtype = config::Precision::Float16;
         c.training.loss_scale_init = 1e9, c.training.loss_scale_growth_interval = 3;
       }},
      {"a model whose loss is the sum of its outputs", [](config::Config&) {}, small_tutorial()},
      {"cuDNN's attention", in_bfloat16, model_for_cudnn(), {.rows = 2, .tokens = 64}},
  };
}

/// Rows whose shape and ignored targets change with the steps: each twice or more, and back again.
class ChangingLoader final : public data::Loader {
 public:
  data::Batch next() override {
    constexpr std::array<int64_t, 8> kRows{2, 2, 2, 1, 2, 2, 2, 2};
    const int64_t rows = kRows[static_cast<size_t>(step_)], tokens = 6;
    data::Batch batch{.input_ids = Tensor::empty({rows, tokens}, DType::Int32),
                      .targets = Tensor::empty({rows, tokens}, DType::Int32)};
    for (int64_t i = 0; i < rows * tokens; ++i) {
      batch.input_ids.values<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>((step_ * 5 + i * 3) % 17);
      batch.targets.values<int32_t>()[static_cast<size_t>(i)] =
          step_ >= 6 && i % 3 == 0 ? data::kIgnored : static_cast<int32_t>((step_ * 5 + i * 3 + 1) % 17);
    }
    batch.valid_tokens = data::count_valid(batch.targets);
    ++step_;
    return batch;
  }
  [[nodiscard]] nlohmann::json state() const override { return nullptr; }
  void load_state(const nlohmann::json&) override {}
  [[nodiscard]] int64_t sequences_seen() const override { return 2 * step_; }
  [[nodiscard]] int64_t sequences_per_epoch() const override { return 1000; }
  [[nodiscard]] int64_t sequences_per_step() const override { return 2; }
  [[nodiscard]] int64_t sequence_length() const override { return 6; }

 private:
  int64_t step_ = 0;
};

/// Losses of eight steps, after each of which the model is asked for the loss of longer rows, as a validation does.
std::vector<double> losses_of_changing_steps(bool graphs) {
  std::vector<double> losses;
  test::run_ranks(1, [&](comm::Communicator& comm) {
    const Device device{DeviceKind::Cuda, 0};
    ShardedModel sharded = shard_model(test::tiny_model(), comm, resolve({}, Ranks{1, 0}, device).sharding);
    fill_random(*sharded.engine, 7);
    optim::AdamW optimizer(*sharded.engine, {});
    optim::LossScaler scaler;
    ChangingLoader loader;
    std::vector<Tensor> others;  // they take what a table that was dropped has left
    Trainer trainer(
        {comm, *sharded.model, *sharded.engine, optimizer, scaler, loader},
        {.total_steps = 8, .schedule = optim::schedule_of({}, 8), .graphs = graphs},
        {.asked_to_stop = [] { return false; },
         .validate = [&](int64_t step) -> std::optional<Validated> {
           const Tensor ids = Tensor::zeros({1, 8 + step}, DType::Int32);
           sharded.engine->begin_micro_batch(true);
           const double loss = sharded.model->loss({ids, ids}, models::Pass{}).read().loss_sum;
           for (int i = 0; i < 20; ++i)
             others.push_back(on_device(Tensor::from<int32_t>(std::array<int32_t, 3>{7, 7, 7}, {3}), device));
           return Validated{.loss = loss};
         },
         .on_step =
             [&](const StepResult& result) {
               losses.push_back(result.loss);
               losses.push_back(result.validated->loss);
             },
         .is_checkpoint_due = [](int64_t) { return false; },
         .save = [](const Progress&) {}});
    Progress progress;
    trainer.run(progress);
  });
  return losses;
}

}  // namespace

TEST_CASE("step graph: steps are the same bit for bit as without", "[train][bit_equal]") {
  if (cuda_devices() == 0) return skip("no CUDA device");
  const Changed run = GENERATE(from_range(runs()));
  CAPTURE(run.name);
  const auto ran = [&](bool graphs) {
    config::Config config;
    run.change(config);
    config.device.kind = config::DeviceChoice::Cuda,
    config.device.cuda_graphs = graphs ? config::CudaGraphs::Always : config::CudaGraphs::Never;
    return test::run_small(config, run.model, 1, run.batch, 6);
  };
  const test::Ran with = ran(true), without = ran(false);
  CHECK(with.losses == without.losses);
  CHECK(with.skipped == without.skipped);
  CHECK((with.weights == without.weights));
}

TEST_CASE("step graph: steps of another shape, and what happens between steps, change nothing", "[train]") {
  if (cuda_devices() == 0) return skip("no CUDA device");
  CHECK(losses_of_changing_steps(true) == losses_of_changing_steps(false));
}

TEST_CASE("step graph: where a run cannot have one it says why", "[train]") {
  config::Loaded loaded;
  loaded.config.device.cuda_graphs = config::CudaGraphs::Always;
  rendezvous::MemoryStore store;
  const auto why = [&](int ranks, Device device) {
    std::string error;
    test::run_ranks(ranks, [&](comm::Communicator& comm) {
      try {
        const World world{.comm = comm, .store = store, .device = device};
        const bool has = has_graphs(loaded, resolve(loaded, world), world);
        if (!has && comm.rank() == 0) error = "none";
      } catch (const InputError& failure) {
        if (comm.rank() == 0) error = failure.what();
      }
    });
    return error;
  };
  const Device cuda{DeviceKind::Cuda, 0};
  CHECK_THAT(why(1, {}),
             Catch::Contains("device.cuda_graphs") && Catch::EndsWith("but this run computes on the CPU; use auto"));
  CHECK_THAT(why(2, cuda),
             Catch::EndsWith("but this run has 2 ranks, and their collectives cannot be part of a graph; use auto"));
  CHECK(why(1, cuda).empty());
  loaded.config.device.cuda_graphs = config::CudaGraphs::Auto;
  CHECK(why(1, cuda).empty());
  CHECK(why(2, cuda) == "none");
  CHECK(why(1, {}) == "none");
  loaded.config.parallel.offload = true;
  CHECK(why(1, cuda) == "none");
  loaded.config = {};
  CHECK(why(1, cuda) == "none");
}

}  // namespace trainyard::train
