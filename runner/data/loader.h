#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "data/batch.h"

namespace trainyard::data {

/// This rank's part of one global order of sequences. The order does not depend on the number of ranks, so a run can go
/// on with another number. Not thread-safe.
class Loader {
 public:
  virtual ~Loader() = default;

  /// The rank's part of the next global micro-batch. Every rank calls it equally often.
  /// Throws InputError where the data has come to its end or is wrong.
  virtual Batch next() = 0;
  /// Leaves out the next micro-batch, without reading it where that can be.
  virtual void skip() { static_cast<void>(next()); }

  /// Where the next micro-batch begins, the same on all ranks. load_state() takes it, at any number of ranks; it throws
  /// InputError where the state belongs to other data or another order.
  [[nodiscard]] virtual nlohmann::json state() const = 0;
  virtual void load_state(const nlohmann::json& state) = 0;

  /// Sequences handed out so far to all ranks together, and how many one pass over the data has.
  [[nodiscard]] virtual int64_t sequences_seen() const = 0;
  /// kEndless where it has no end.
  [[nodiscard]] virtual int64_t sequences_per_epoch() const = 0;
  static constexpr int64_t kEndless = int64_t{1} << 40;
  /// Rows that a pass takes: more than its sequences where it ends with a short micro-batch of its own, which counts as
  /// a full one.
  [[nodiscard]] virtual int64_t rows_per_epoch() const { return sequences_per_epoch(); }

  /// Steps the data has in all; none where it can be repeated for ever.
  [[nodiscard]] virtual std::optional<int64_t> steps_available() const { return std::nullopt; }

  /// Sequences (rows) of a step over all ranks.
  [[nodiscard]] virtual int64_t sequences_per_step() const = 0;
  /// Tokens of a row: targets; and of its source where it has one. Where rows differ, their mean.
  [[nodiscard]] virtual int64_t sequence_length() const = 0;
  [[nodiscard]] virtual int64_t source_length() const { return 0; }
  /// The most of them that a row has: what memory is planned for.
  [[nodiscard]] virtual int64_t longest_sequence() const { return sequence_length(); }
  [[nodiscard]] virtual int64_t longest_source() const { return source_length(); }
};

}  // namespace trainyard::data
