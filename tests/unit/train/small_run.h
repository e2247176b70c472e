#pragma once

#include <optional>
#include <vector>

#include "assemble/run_spec.h"
#include "config/config.h"
#include "models/config.h"
#include "plan/simulation.h"
#include "support/ranks.h"
#include "tensor/memory.h"
#include "train/trainer.h"

namespace trainyard::test {

/// A decoder of which nothing divides by 2, 3 or 4.
inline models::ModelConfig odd_model() {
  models::ModelConfig model;
  model.family = "qwen3";
  model.vocab_size = 301, model.hidden_size = 45, model.intermediate_size = 77, model.layers = 5;
  model.heads = 3, model.kv_heads = 1, model.head_dim = 14, model.max_positions = 64;
  model.tied_head = true;
  return model;
}

/// Rows of a formula, the same global batch at any number of ranks.
class FormulaLoader final : public data::Loader {
 public:
  FormulaLoader(train::BatchShape shape, int64_t vocab, int64_t accumulation, int rank, int world)
      : shape_(shape), vocab_(vocab), accumulation_(accumulation), rank_(rank), world_(world) {}

  data::Batch next() override {
    data::Batch batch{.input_ids = Tensor::empty({shape_.rows, shape_.tokens}, DType::Int32),
                      .targets = Tensor::empty({shape_.rows, shape_.tokens}, DType::Int32),
                      .valid_tokens = shape_.rows * shape_.tokens};
    for (int64_t row = 0; row < shape_.rows; ++row) {
      const int64_t sequence = seen_ + row * world_ + rank_;
      batch.sequences.push_back(sequence);
      for (int64_t t = 0; t < shape_.tokens; ++t) {
        const auto at = static_cast<size_t>(row * shape_.tokens + t);
        batch.input_ids.values<int32_t>()[at] = static_cast<int32_t>((sequence * 31 + t * 7) % vocab_);
        batch.targets.values<int32_t>()[at] = static_cast<int32_t>((sequence * 31 + (t + 1) * 7) % vocab_);
      }
    }
    seen_ += shape_.rows * world_;
    return batch;
  }
  [[nodiscard]] nlohmann::json state() const override;
  void load_state(const nlohmann::json&) override {}
  [[nodiscard]] int64_t sequences_seen() const override { return seen_; }
  [[nodiscard]] int64_t sequences_per_epoch() const override { return 1000; }
  [[nodiscard]] int64_t sequences_per_step() const override { return shape_.rows * world_ * accumulation_; }
  [[nodiscard]] int64_t sequence_length() const override { return shape_.tokens; }

 private:
  train::BatchShape shape_;
  int64_t vocab_, accumulation_;
  int rank_, world_;
  int64_t seen_ = 0;
};

/// What rank 0 saw of a short run.
struct Ran {
  std::vector<double> losses, norms, lrs;
  std::vector<double> loss_scales;  ///< empty where losses are not scaled
  std::vector<bool> skipped;
  std::vector<train::StepTimes> times;
  std::vector<std::optional<train::SlowRank>> slow;
  std::vector<float> weights;  ///< its rows of everything, at the end
  MemoryUse at_peak, most;
};

/// Steps of a real run on one of its ranks, which computes on `device`.
Ran run_rank(comm::Communicator& comm, const config::Config& config, const models::ModelConfig& model,
             train::BatchShape batch, int64_t steps, Device device);

/// Of all over in-process ranks, on the device that config.device.kind says: auto, and there is one, on
/// it.
Ran run_small(const config::Config& config, const models::ModelConfig& model, int world, train::BatchShape batch,
              int64_t steps = 2);

}  // namespace trainyard::test
