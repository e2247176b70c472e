#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "data/loaders.h"
#include "data/ordered_loader.h"
#include "data/permutation.h"

namespace trainyard::data {
namespace {
using nlohmann::json;

class RandomTokens final : public OrderedLoader {
 public:
  explicit RandomTokens(const RandomTokenOptions& options)
      : OrderedLoader("random_tokens", {options.place, options.batch_size, options.accumulation_steps}),
        options_(options) {}

  [[nodiscard]] int64_t sequences_per_epoch() const override { return kEndless; }
  [[nodiscard]] int64_t sequence_length() const override { return options_.sequence_length; }

 protected:
  Batch batch_of(const std::vector<int64_t>& sequences) override {
    const Shape shape{std::ssize(sequences), options_.sequence_length};
    Batch batch{.input_ids = Tensor::empty(shape, DType::Int32),
                .targets = Tensor::empty(shape, DType::Int32),
                .valid_tokens = count_of(shape)};
    const auto input = batch.input_ids.values<int32_t>(), targets = batch.targets.values<int32_t>();
    size_t at = 0;
    for (const int64_t sequence : sequences)
      for (int64_t token = 0; token < options_.sequence_length; ++token, ++at) {
        input[at] = id(sequence, token);
        targets[at] = id(sequence, token + 1);
      }
    return batch;
  }
  [[nodiscard]] json order() const override {
    return {{"sequence_length", options_.sequence_length}, {"seed", options_.seed}, {"vocab", options_.vocab_size}};
  }
  [[nodiscard]] std::string name() const override { return "random ids"; }

 private:
  [[nodiscard]] int32_t id(int64_t sequence, int64_t token) const {
    const uint64_t row = mix_bits(mix_bits(options_.seed) ^ static_cast<uint64_t>(sequence));
    return static_cast<int32_t>(mix_bits(row ^ static_cast<uint64_t>(token)) %
                                static_cast<uint64_t>(options_.vocab_size));
  }

  RandomTokenOptions options_;
};

}  // namespace

std::unique_ptr<Loader> random_tokens(const RandomTokenOptions& options) {
  if (options.sequence_length < 1 || options.vocab_size < 1)
    throw std::invalid_argument(fmt::format("random_tokens: sequence_length {}, vocab_size {}",
                                            options.sequence_length, options.vocab_size));
  return std::make_unique<RandomTokens>(options);
}

}  // namespace trainyard::data
