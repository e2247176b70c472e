#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "data/loader.h"
#include "data/loaders.h"
#include "tensor/safetensors.h"

namespace trainyard::data {

/// What the loaders of token_batches() share: steps that a file holds, in their order, dealt round robin over the ranks
/// and in pieces over the micro-batches. Who derives says what a row is.
class StoredSteps : public Loader {
 public:
  Batch next() final;
  [[nodiscard]] nlohmann::json state() const final;
  void load_state(const nlohmann::json& state) final;

  [[nodiscard]] int64_t sequences_seen() const final { return step_ * rows(); }
  [[nodiscard]] int64_t sequences_per_epoch() const final { return steps() * rows(); }
  [[nodiscard]] std::optional<int64_t> steps_available() const final {
    return is_run_ ? std::optional(steps()) : std::nullopt;
  }
  [[nodiscard]] int64_t sequences_per_step() const final { return rows(); }

 protected:
  /// `part`: the tensor that tells whether the file has a run's steps (train.PART) or one batch (PART), by
  /// options.prefer where it has both.
  StoredSteps(SafetensorsFile file, const TokenBatchOptions& options, const char* part);

  /// The name of a tensor, and what its shape must look like.
  [[nodiscard]] std::string name(const char* part) const;
  [[nodiscard]] const char* form() const { return is_run_ ? "[steps, rows, tokens]" : "[rows, tokens]"; }
  [[nodiscard]] size_t dimensions() const { return is_run_ ? 3 : 2; }
  /// The current step's part of a tensor that the file has, as it is stored.
  [[nodiscard]] Tensor stored(const char* part) const;

  [[nodiscard]] int64_t steps() const { return is_run_ ? shape_.front() : 1; }
  [[nodiscard]] int64_t rows() const { return shape_[shape_.size() - 2]; }
  [[nodiscard]] int64_t own_rows() const;

  /// This rank's rows of the current step, without valid_tokens and sequences. Throws InputError for wrong ones.
  [[nodiscard]] virtual Batch rank_rows() const = 0;
  /// What a state must have in common with the file to be of it.
  [[nodiscard]] virtual nlohmann::json layout() const = 0;

  const SafetensorsFile file_;
  const TokenBatchOptions options_;
  const bool is_run_;
  Shape shape_;  ///< of input_ids, once it has been checked
  int64_t step_ = 0;

 private:
  [[nodiscard]] Batch piece(int64_t begin, int64_t rows) const;

  int64_t micro_ = 0;
  Batch batch_;  ///< this rank's rows of the current step
};

}  // namespace trainyard::data
