#pragma once

#include <cstdint>
#include <vector>

#include "data/loaders.h"

namespace trainyard::data {

/// The windows of a corpus (loaders.h, packed_loader) in the endless order of its epochs.
class PackedCorpus {
 public:
  /// Throws InputError where the corpus is too short for one window, or has none with a target; std::invalid_argument
  /// for a sequence_length below 1.
  PackedCorpus(TokenArray tokens, const PackingOptions& options);

  /// Sequences of an epoch: the windows that have a target.
  [[nodiscard]] int64_t windows() const { return windows_; }
  [[nodiscard]] const TokenArray& tokens() const { return tokens_; }
  /// Puts the sequence of this number into `row` of input_ids and targets, [rows, sequence_length], and adds its
  /// targets to valid_tokens.
  void fill_row(int64_t sequence, int64_t row, Batch& batch) const;

 private:
  TokenArray tokens_;
  int64_t length_;
  uint64_t seed_;
  bool is_shuffled_;
  int64_t windows_;
  std::vector<int64_t> with_targets_;  ///< their windows, where not all ids are targets
};

/// A batch of so many rows that are to be filled in.
[[nodiscard]] Batch unfilled_batch(int64_t rows, int64_t sequence_length);

}  // namespace trainyard::data
