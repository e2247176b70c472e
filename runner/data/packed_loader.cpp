#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/error.h"
#include "base/text.h"
#include "data/loaders.h"
#include "data/ordered_loader.h"
#include "data/permutation.h"

namespace trainyard::data {
namespace {
using nlohmann::json;

class PackedLoader final : public OrderedLoader {
 public:
  PackedLoader(TokenArray tokens, const PackingOptions& options)
      : OrderedLoader("packed_loader",
                      {options.place, options.batch_size, options.accumulation_steps, options.repeat}),
        tokens_(std::move(tokens)),
        options_(options),
        windows_((tokens_.size() - 1) / options.sequence_length) {
    if (windows_ < 1)
      throw InputError(fmt::format(
          "{}: {} tokens, but one sequence takes {} (training.sequence_length + 1); shorten it or give more text",
          tokens_.name(), with_thousands(tokens_.size()), with_thousands(options.sequence_length + 1)));
  }

  [[nodiscard]] int64_t sequences_per_epoch() const override { return windows_; }
  [[nodiscard]] int64_t sequence_length() const override { return options_.sequence_length; }

 protected:
  Batch batch_of(const std::vector<int64_t>& sequences) override {
    const Shape shape{std::ssize(sequences), sequence_length()};
    Batch batch{.input_ids = Tensor::empty(shape, DType::Int32),
                .targets = Tensor::empty(shape, DType::Int32),
                .valid_tokens = count_of(shape)};
    for (size_t row = 0; row < sequences.size(); ++row) fill_row(sequences[row], static_cast<int64_t>(row), batch);
    return batch;
  }
  [[nodiscard]] json order() const override {
    return {{"corpus", tokens_.fingerprint()},
            {"sequence_length", options_.sequence_length},
            {"seed", options_.seed},
            {"shuffle", options_.shuffle}};
  }
  [[nodiscard]] std::string name() const override { return tokens_.name(); }

 private:
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
};

}  // namespace

std::unique_ptr<Loader> packed_loader(TokenArray tokens, const PackingOptions& options) {
  if (options.sequence_length < 1)
    throw std::invalid_argument(fmt::format("packed_loader: sequence_length {}", options.sequence_length));
  return std::make_unique<PackedLoader>(std::move(tokens), options);
}

}  // namespace trainyard::data
