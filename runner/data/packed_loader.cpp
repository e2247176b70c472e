#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/error.h"
#include "base/text.h"
#include "data/loader_state.h"
#include "data/loaders.h"
#include "data/permutation.h"

namespace trainyard::data {
namespace {
using nlohmann::json;

class PackedLoader : public Loader {
 public:
  PackedLoader(TokenArray tokens, const PackingOptions& options)
      : tokens_(std::move(tokens)), options_(options), windows_((tokens_.size() - 1) / options.sequence_length) {
    if (windows_ < 1)
      throw InputError(fmt::format(
          "{}: {} tokens, but one sequence takes {} (training.sequence_length + 1); shorten it or give more text",
          tokens_.name(), with_thousands(tokens_.size()), with_thousands(options.sequence_length + 1)));
  }

  Batch next() override {
    const int64_t rows = rows_left(options_.repeat, options_.place, options_.batch_size, windows_, sequences_seen_);
    Batch batch{Tensor::empty({rows, sequence_length()}, DType::Int32),
                Tensor::empty({rows, sequence_length()}, DType::Int32),
                {},
                rows * sequence_length()};
    for (int64_t row = 0; row < rows; ++row) {
      batch.sequences.push_back(sequences_seen_ + row * options_.place.world + options_.place.rank);
      fill_row(batch.sequences.back(), row, batch);
    }
    skip();
    return batch;
  }
  void skip() override { sequences_seen_ += options_.batch_size * options_.place.world; }

  /// The count is of all ranks together, so any number of ranks can go on from it.
  [[nodiscard]] json state() const override {
    json state = order();
    state["sequences_seen"] = sequences_seen_;
    return state;
  }

  void load_state(const json& state) override {
    require_same(state, order(), tokens_.name());
    sequences_seen_ = count_in(state, "sequences_seen");
  }

  [[nodiscard]] int64_t sequences_seen() const override { return sequences_seen_; }
  [[nodiscard]] int64_t sequences_per_epoch() const override { return windows_; }
  [[nodiscard]] int64_t sequences_per_step() const override {
    return options_.batch_size * options_.place.world * options_.accumulation_steps;
  }
  [[nodiscard]] int64_t sequence_length() const override { return options_.sequence_length; }

 private:
  /// What the order of sequences follows from.
  [[nodiscard]] json order() const {
    return {{"corpus", tokens_.fingerprint()},
            {"sequence_length", options_.sequence_length},
            {"seed", options_.seed},
            {"shuffle", options_.shuffle}};
  }

  /// Sequence number `sequence` of the endless run of epochs, each in an order of its own.
  void fill_row(int64_t sequence, int64_t row, Batch& batch) const {
    const auto index = static_cast<uint64_t>(sequence % windows_);
    const Permutation permutation = order_of_epoch(windows_, options_.seed, sequence / windows_);
    const auto window = static_cast<int64_t>(options_.shuffle ? permutation(index) : index);
    const auto length = static_cast<size_t>(sequence_length());
    const int64_t begin = window * sequence_length();
    tokens_.copy(begin, batch.input_ids.values<int32_t>().subspan(static_cast<size_t>(row) * length, length));
    tokens_.copy(begin + 1, batch.targets.values<int32_t>().subspan(static_cast<size_t>(row) * length, length));
  }

  TokenArray tokens_;
  PackingOptions options_;
  int64_t windows_;
  int64_t sequences_seen_ = 0;
};

}  // namespace

std::unique_ptr<Loader> packed_loader(TokenArray tokens, const PackingOptions& options) {
  const auto& [rank, world] = options.place;
  if (options.sequence_length < 1 || options.batch_size < 1 || options.accumulation_steps < 1 || world < 1 ||
      rank < 0 || rank >= world)
    throw std::invalid_argument(
        fmt::format("packed_loader: sequence_length {}, batch_size {}, accumulation_steps {}, rank {} of {}",
                    options.sequence_length, options.batch_size, options.accumulation_steps, rank, world));
  return std::make_unique<PackedLoader>(std::move(tokens), options);
}

}  // namespace trainyard::data
