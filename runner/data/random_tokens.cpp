#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "data/loader_state.h"
#include "data/loaders.h"
#include "data/permutation.h"

namespace trainyard::data {
namespace {
using nlohmann::json;

class RandomTokens : public Loader {
 public:
  explicit RandomTokens(const RandomTokenOptions& options) : options_(options) {}

  Batch next() override {
    const int64_t rows = options_.batch_size, tokens = options_.sequence_length;
    Batch batch{
        Tensor::empty({rows, tokens}, DType::Int32), Tensor::empty({rows, tokens}, DType::Int32), {}, rows * tokens};
    const auto input = batch.input_ids.values<int32_t>(), targets = batch.targets.values<int32_t>();
    for (int64_t row = 0; row < rows; ++row) {
      batch.sequences.push_back(seen_ + row * options_.place.world + options_.place.rank);
      for (int64_t token = 0; token < tokens; ++token) {
        const auto at = static_cast<size_t>(row * tokens + token);
        input[at] = id(batch.sequences.back(), token);
        targets[at] = id(batch.sequences.back(), token + 1);
      }
    }
    skip();
    return batch;
  }
  void skip() override { seen_ += options_.batch_size * options_.place.world; }

  [[nodiscard]] json state() const override {
    json state = order();
    state["sequences_seen"] = seen_;
    return state;
  }
  void load_state(const json& state) override {
    require_same(state, order(), "random ids");
    seen_ = count_in(state, "sequences_seen");
  }

  [[nodiscard]] int64_t sequences_seen() const override { return seen_; }
  [[nodiscard]] int64_t sequences_per_epoch() const override { return kEndless; }
  [[nodiscard]] int64_t sequences_per_step() const override {
    return options_.batch_size * options_.place.world * options_.accumulation_steps;
  }
  [[nodiscard]] int64_t sequence_length() const override { return options_.sequence_length; }

 private:
  [[nodiscard]] json order() const {
    return {{"sequence_length", options_.sequence_length}, {"seed", options_.seed}, {"vocab", options_.vocab_size}};
  }

  [[nodiscard]] int32_t id(int64_t sequence, int64_t token) const {
    const uint64_t row = mix_bits(mix_bits(options_.seed) ^ static_cast<uint64_t>(sequence));
    return static_cast<int32_t>(mix_bits(row ^ static_cast<uint64_t>(token)) %
                                static_cast<uint64_t>(options_.vocab_size));
  }

  RandomTokenOptions options_;
  int64_t seen_ = 0;
};

}  // namespace

std::unique_ptr<Loader> random_tokens(const RandomTokenOptions& options) {
  const auto& [rank, world] = options.place;
  if (options.sequence_length < 1 || options.batch_size < 1 || options.accumulation_steps < 1 ||
      options.vocab_size < 1 || world < 1 || rank < 0 || rank >= world)
    throw std::invalid_argument(fmt::format(
        "random_tokens: sequence_length {}, batch_size {}, accumulation_steps {}, vocab_size {}, rank {} of {}",
        options.sequence_length, options.batch_size, options.accumulation_steps, options.vocab_size, rank, world));
  return std::make_unique<RandomTokens>(options);
}

}  // namespace trainyard::data
