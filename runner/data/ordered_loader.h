#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/loaders.h"

namespace trainyard::data {

/// How the rows of an endless order are dealt.
struct Dealing {
  Place place;
  int64_t batch_size = 0;          ///< rows a rank and micro-batch
  int64_t accumulation_steps = 1;  ///< micro-batches a step
  Repeat repeat = Repeat::Forever;
};

/// What loaders of corpora, pairs, images and random ids have in common: an order of sequences in which global
/// micro-batch k holds [k · rows, (k + 1) · rows), row g of it at rank g % world, and the place in it, which does not
/// depend on the number of ranks.
class OrderedLoader : public Loader {
 public:
  Batch next() final;
  void skip() override { seen_ += rows_together(); }
  [[nodiscard]] nlohmann::json state() const final;
  void load_state(const nlohmann::json& state) final;
  [[nodiscard]] int64_t sequences_seen() const final { return seen_; }
  [[nodiscard]] int64_t sequences_per_step() const final { return rows_together() * dealing_.accumulation_steps; }

 protected:
  /// Throws std::invalid_argument, naming the loader by `what`, where no row could be dealt so.
  OrderedLoader(const char* what, const Dealing& dealing);

  /// The rows of these sequences, numbered in the endless order.
  [[nodiscard]] virtual Batch batch_of(const std::vector<int64_t>& sequences) = 0;
  /// What the order follows from: the place in it belongs to nothing else.
  [[nodiscard]] virtual nlohmann::json order() const = 0;
  /// What messages call the data.
  [[nodiscard]] virtual std::string name() const = 0;
  /// This rank's rows in the next micro-batch.
  [[nodiscard]] virtual int64_t rows_of_rank() const;

  [[nodiscard]] const Dealing& dealing() const { return dealing_; }
  /// The rows of all ranks in a full micro-batch.
  [[nodiscard]] int64_t rows_together() const { return dealing_.batch_size * dealing_.place.world; }
  void add_seen(int64_t sequences) { seen_ += sequences; }

 private:
  const Dealing dealing_;
  int64_t seen_ = 0;  ///< sequences given out to all ranks together
};

}  // namespace trainyard::data
