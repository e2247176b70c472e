#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "data/mixture.h"
#include "data/ordered_loader.h"
#include "data/packed_corpus.h"

namespace trainyard::data {
namespace {
using nlohmann::json;

std::vector<int64_t> weights_of(const std::vector<WeightedCorpus>& corpora) {
  std::vector<int64_t> weights;
  for (const WeightedCorpus& corpus : corpora) weights.push_back(corpus.weight);
  return weights;
}

class MixedLoader final : public OrderedLoader {
 public:
  MixedLoader(std::vector<WeightedCorpus> corpora, const PackingOptions& options)
      : OrderedLoader("mixed_loader", {options.place, options.batch_size, options.accumulation_steps}),
        mixture_(weights_of(corpora)),
        options_(options) {
    for (WeightedCorpus& corpus : corpora) corpora_.emplace_back(std::move(corpus.tokens), options);
  }

  [[nodiscard]] int64_t sequences_per_epoch() const override { return kEndless; }
  [[nodiscard]] int64_t sequence_length() const override { return options_.sequence_length; }

 protected:
  Batch batch_of(const std::vector<int64_t>& sequences) override {
    Batch batch = unfilled_batch(std::ssize(sequences), sequence_length());
    for (int64_t row = 0; row < std::ssize(sequences); ++row) {
      const auto [source, index] = mixture_.at(sequences[static_cast<size_t>(row)]);
      corpora_[source].fill_row(index, row, batch);
    }
    return batch;
  }
  [[nodiscard]] json order() const override {
    json corpora = json::array();
    for (const PackedCorpus& corpus : corpora_) corpora.push_back(corpus.tokens().fingerprint());
    return {{"corpora", corpora},
            {"weights", mixture_.weights()},
            {"sequence_length", options_.sequence_length},
            {"seed", options_.seed},
            {"shuffle", options_.shuffle}};
  }
  [[nodiscard]] std::string name() const override {
    std::vector<std::string> names;
    for (const PackedCorpus& corpus : corpora_) names.push_back(corpus.tokens().name());
    return fmt::format("{}", fmt::join(names, ", "));
  }

 private:
  Mixture mixture_;
  std::vector<PackedCorpus> corpora_;
  PackingOptions options_;
};

}  // namespace

std::unique_ptr<Loader> mixed_loader(std::vector<WeightedCorpus> corpora, const PackingOptions& options) {
  return std::make_unique<MixedLoader>(std::move(corpora), options);
}

}  // namespace trainyard::data
