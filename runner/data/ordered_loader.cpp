#include "data/ordered_loader.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "data/loader_state.h"

namespace trainyard::data {

OrderedLoader::OrderedLoader(const char* what, const Dealing& dealing) : dealing_(dealing) {
  const auto& [rank, world] = dealing.place;
  if (dealing.batch_size < 1 || dealing.accumulation_steps < 1 || world < 1 || rank < 0 || rank >= world)
    throw std::invalid_argument(fmt::format("{}: batch_size {}, accumulation_steps {}, rank {} of {}", what,
                                            dealing.batch_size, dealing.accumulation_steps, rank, world));
}

Batch OrderedLoader::next() {
  const auto& [rank, world] = dealing_.place;
  std::vector<int64_t> sequences(static_cast<size_t>(rows_of_rank()));
  for (size_t row = 0; row < sequences.size(); ++row)
    sequences[row] = seen_ + static_cast<int64_t>(row) * world + rank;
  Batch batch = batch_of(sequences);
  batch.sequences = std::move(sequences);
  skip();
  return batch;
}

nlohmann::json OrderedLoader::state() const {
  nlohmann::json state = order();
  state["sequences_seen"] = seen_;
  state["reading_rules"] = kReadingRules;
  return state;
}

void OrderedLoader::load_state(const nlohmann::json& state) {
  require_same(state, order(), name());
  seen_ = count_in(state, "sequences_seen");
}

int64_t OrderedLoader::rows_of_rank() const {
  return rows_left(dealing_.repeat, dealing_.place, dealing_.batch_size, sequences_per_epoch(), seen_);
}

}  // namespace trainyard::data
