#include <nlohmann/json.hpp>

#include "data/ordered_loader.h"
#include "data/packed_corpus.h"

namespace trainyard::data {
namespace {
using nlohmann::json;

class PackedLoader final : public OrderedLoader {
 public:
  PackedLoader(TokenArray tokens, const PackingOptions& options)
      : OrderedLoader("packed_loader", {options.place, options.batch_size, options.accumulation_steps, options.repeat}),
        corpus_(std::move(tokens), options),
        options_(options) {}

  [[nodiscard]] int64_t sequences_per_epoch() const override { return corpus_.windows(); }
  [[nodiscard]] int64_t sequence_length() const override { return options_.sequence_length; }

 protected:
  Batch batch_of(const std::vector<int64_t>& sequences) override {
    Batch batch = unfilled_batch(std::ssize(sequences), sequence_length());
    for (int64_t row = 0; row < std::ssize(sequences); ++row)
      corpus_.fill_row(sequences[static_cast<size_t>(row)], row, batch);
    return batch;
  }
  [[nodiscard]] json order() const override {
    return {{"corpus", corpus_.tokens().fingerprint()},
            {"sequence_length", options_.sequence_length},
            {"seed", options_.seed},
            {"shuffle", options_.shuffle}};
  }
  [[nodiscard]] std::string name() const override { return corpus_.tokens().name(); }

 private:
  PackedCorpus corpus_;
  PackingOptions options_;
};

}  // namespace

std::unique_ptr<Loader> packed_loader(TokenArray tokens, const PackingOptions& options) {
  return std::make_unique<PackedLoader>(std::move(tokens), options);
}

}  // namespace trainyard::data
