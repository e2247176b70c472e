#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "data/ordered_loader.h"
#include "data/pairs.h"
#include "data/permutation.h"

namespace trainyard::data {
namespace {
using nlohmann::json;

constexpr int64_t kWindow = 1024, kRun = 32;  // pairs; part of the order, so never changed

class PairLoader final : public OrderedLoader {
 public:
  PairLoader(PairArray pairs, const PairLoaderOptions& options)
      : OrderedLoader("pair_loader", {options.place, options.batch_size, options.accumulation_steps, options.repeat}),
        pairs_(std::move(pairs)),
        options_(options) {
    for (int64_t pair = 0; pair < pairs_.size(); ++pair) {
      source_.take(pairs_.source(pair).size());
      target_.take(pairs_.target(pair).size());
    }
    if (options_.padding == Padding::MaxLength)
      source_.most = options_.max_source_length, target_.most = options_.max_target_length;
  }

  [[nodiscard]] int64_t sequences_per_epoch() const override { return pairs_.size(); }
  [[nodiscard]] int64_t sequence_length() const override { return mean(target_); }
  [[nodiscard]] int64_t source_length() const override { return mean(source_); }
  [[nodiscard]] int64_t longest_sequence() const override { return row_length(target_.most); }
  [[nodiscard]] int64_t longest_source() const override { return row_length(source_.most); }

 protected:
  Batch batch_of(const std::vector<int64_t>& sequences) override {
    std::vector<int64_t> chosen;
    for (const int64_t sequence : sequences) chosen.push_back(pair_at(sequence));
    return padded(chosen);
  }
  /// Padding to the limits and to the longest have one order.
  [[nodiscard]] json order() const override {
    return {{"pairs", pairs_.fingerprint()},
            {"buckets", options_.padding == Padding::Bucket},
            {"seed", options_.seed},
            {"shuffle", options_.shuffle}};
  }
  [[nodiscard]] std::string name() const override { return pairs_.name(); }

 private:
  /// The lengths of all sources, or of all targets.
  struct Lengths {
    int64_t sum = 0, most = 0;
    void take(size_t tokens) {
      sum += static_cast<int64_t>(tokens);
      most = std::max(most, static_cast<int64_t>(tokens));
    }
  };
  [[nodiscard]] int64_t mean(const Lengths& lengths) const { return (lengths.sum + pairs_.size() / 2) / pairs_.size(); }

  [[nodiscard]] int64_t pair_at(int64_t sequence) {
    const int64_t epoch = sequence / pairs_.size(), index = sequence % pairs_.size();
    if (options_.padding != Padding::Bucket) return shuffled(epoch, index);
    if (const int64_t window = index / kWindow; epoch != held_epoch_ || window != held_window_)
      fill_window(epoch, window);
    return window_[static_cast<size_t>(index % kWindow)];
  }

  [[nodiscard]] uint64_t key_of(int64_t epoch) const {
    return mix_bits(mix_bits(options_.seed) ^ static_cast<uint64_t>(epoch));
  }

  [[nodiscard]] int64_t shuffled(int64_t epoch, int64_t index) const {
    if (!options_.shuffle) return index;
    const Permutation permutation = order_of_epoch(pairs_.size(), options_.seed, epoch);
    return static_cast<int64_t>(permutation(static_cast<uint64_t>(index)));
  }

  void fill_window(int64_t epoch, int64_t window) {
    const int64_t begin = window * kWindow, size = std::min(kWindow, pairs_.size() - begin);
    std::vector<int64_t> sorted;
    for (int64_t i = 0; i < size; ++i) sorted.push_back(shuffled(epoch, begin + i));
    std::ranges::stable_sort(sorted, {}, [this](int64_t pair) {
      return std::tuple(pairs_.source(pair).size(), pairs_.target(pair).size());
    });
    window_.clear();
    const int64_t runs = (size + kRun - 1) / kRun;
    const Permutation permutation(static_cast<uint64_t>(runs), mix_bits(key_of(epoch) + static_cast<uint64_t>(window)));
    for (int64_t i = 0; i < runs; ++i) {
      const int64_t run = options_.shuffle ? static_cast<int64_t>(permutation(static_cast<uint64_t>(i))) : i;
      for (int64_t at = run * kRun; at < std::min((run + 1) * kRun, size); ++at)
        window_.push_back(sorted[static_cast<size_t>(at)]);
    }
    held_epoch_ = epoch, held_window_ = window;
  }

  [[nodiscard]] int64_t row_length(int64_t tokens) const { return padded_length(tokens, options_.pad_to_multiple_of); }

  [[nodiscard]] Batch padded(const std::vector<int64_t>& chosen) const {
    Lengths of_sources{.most = 1}, of_targets{.most = 1};
    for (const int64_t pair : chosen)
      of_sources.take(pairs_.source(pair).size()), of_targets.take(pairs_.target(pair).size());
    if (options_.padding == Padding::MaxLength) of_sources.most = source_.most, of_targets.most = target_.most;
    const auto rows = static_cast<int64_t>(chosen.size());
    Batch batch{Tensor::empty({rows, row_length(of_sources.most)}, DType::Int32),
                Tensor::empty({rows, row_length(of_targets.most)}, DType::Int32)};
    const auto source_length = static_cast<size_t>(batch.input_ids.size(1));
    const auto target_length = static_cast<size_t>(batch.targets.size(1));
    batch.input_lengths = Tensor::empty({rows}, DType::Int32);
    const auto sources = batch.input_ids.values<int32_t>(), targets = batch.targets.values<int32_t>();
    std::ranges::fill(sources, options_.pad_token);
    std::ranges::fill(targets, kIgnored);
    for (size_t row = 0; row < chosen.size(); ++row) {
      const auto source = pairs_.source(chosen[row]), target = pairs_.target(chosen[row]);
      std::ranges::copy(source, sources.subspan(row * source_length).begin());
      std::ranges::copy(target, targets.subspan(row * target_length).begin());
      batch.input_lengths.values<int32_t>()[row] = static_cast<int32_t>(source.size());
      batch.valid_tokens += static_cast<int64_t>(target.size());
    }
    return batch;
  }

  PairArray pairs_;
  PairLoaderOptions options_;
  Lengths source_, target_;
  int64_t held_epoch_ = -1, held_window_ = -1;
  std::vector<int64_t> window_;  ///< pairs of the held window, in the order in which they are given out
};

}  // namespace

std::unique_ptr<Loader> pair_loader(PairArray pairs, const PairLoaderOptions& options) {
  return std::make_unique<PairLoader>(std::move(pairs), options);
}

}  // namespace trainyard::data
