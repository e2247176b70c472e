#pragma once

#include <cstdint>

#include "data/loaders.h"

namespace trainyard::data {

/// The windows of a corpus (loaders.h, packed_loader) in the endless order of its epochs.
class PackedCorpus {
 public:
  /// Throws InputError where the corpus is too short for one window; std::invalid_argument for a sequence_length below 1.
  PackedCorpus(TokenArray tokens, const PackingOptions& options);

  /// Sequences of an epoch.
  [[nodiscard]] int64_t windows() const { return windows_; }
  [[nodiscard]] const TokenArray& tokens() const { return tokens_; }
  /// Puts the sequence of this number into `row` of input_ids and targets, [rows, sequence_length].
  void fill_row(int64_t sequence, int64_t row, Batch& batch) const;

 private:
  TokenArray tokens_;
  int64_t length_;
  uint64_t seed_;
  bool is_shuffled_;
  int64_t windows_;
};

/// A batch of so many rows whose ids are to be filled in, each of them a target.
[[nodiscard]] Batch unfilled_batch(int64_t rows, int64_t sequence_length);

}  // namespace trainyard::data
