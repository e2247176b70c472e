#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "pipeline/schedule.h"

namespace trainyard::pipeline {
namespace {

struct Word {
  Named name;
  std::string_view ours, theirs;
  int stages_per_rank;
};
constexpr std::array kNames = std::to_array<Word>({
    {Named::GPipe, "gpipe", "GPipe", 1},
    {Named::OneFOneB, "1f1b", "1F1B", 1},
    {Named::LoopedBfs, "looped_bfs", "LoopedBFS", 2},
    {Named::Interleaved1F1B, "interleaved_1f1b", "Interleaved1F1B", 2},
    {Named::InterleavedZeroBubble, "interleaved_zero_bubble", "InterleavedZeroBubble", 2},
    {Named::Zb1p, "zb1p", "ZB1P", 1},
    {Named::Zbv, "zbv", "ZBVZeroBubble", 2},
    {Named::DualPipeV, "dualpipe_v", "DualPipeV", 2},
});

const Word& word(Named name) {
  return *std::ranges::find(kNames, name, &Word::name);
}

using Row = std::vector<Cell>;

void idle(Row& row, int slots) {
  row.insert(row.end(), static_cast<size_t>(std::max(slots, 0)), Cell());
}

/// Writes one rank's row; it numbers the micro-batches of each kind on each stage as they come.
class Writer {
 public:
  explicit Writer(Row& row) : row_(row) {}

  void add(Kind kind, int stage) { row_.push_back({next(kind, stage)}); }
  /// A forward and a backward that run together.
  void add_together(int forward_stage, int backward_stage) {
    row_.push_back({next(Kind::Forward, forward_stage), next(Kind::Backward, backward_stage)});
  }
  /// How many of this kind have been written.
  [[nodiscard]] int count(Kind kind, int stage) { return counts_[{kind, stage}]; }

  /// An input part whose weight part add_waiting_weights() writes later, the oldest first.
  void add_input(int stage) {
    add(Kind::BackwardInput, stage);
    waiting_.push_back(row_.back().front());
  }
  void add_waiting_weights() {
    if (waiting_.empty()) return;
    const Action input = waiting_.front();
    waiting_.pop_front();
    row_.push_back({{Kind::BackwardWeight, input.stage, input.microbatch}});
    ++counts_[{Kind::BackwardWeight, input.stage}];
  }

 private:
  /// A whole backward is an input part and a weight part.
  Action next(Kind kind, int stage) {
    if (kind != Kind::Backward) return {kind, stage, counts_[{kind, stage}]++};
    ++counts_[{Kind::BackwardWeight, stage}];
    return {kind, stage, counts_[{Kind::BackwardInput, stage}]++};
  }

  Row& row_;
  std::map<std::pair<Kind, int>, int> counts_;
  std::deque<Action> waiting_;
};

void add_all(Writer& writer, Kind kind, int stage, int times) {
  for (int i = 0; i < times; ++i) writer.add(kind, stage);
}

struct Sizes {
  int ranks, microbatches, stages_per_rank;
};

/// Rows without idle slots: each rank does what is next as soon as it can.
void gpipe(Row& row, int rank, const Sizes& sizes) {
  Writer writer(row);
  add_all(writer, Kind::Forward, rank, sizes.microbatches);
  add_all(writer, Kind::Backward, rank, sizes.microbatches);
  row.push_back({{Kind::ReduceGradient, rank, -1}});
}

void one_f_one_b(Row& row, int rank, const Sizes& sizes) {
  Writer writer(row);
  const int ahead = sizes.ranks - 1 - rank;
  add_all(writer, Kind::Forward, rank, ahead);
  for (int i = ahead; i < sizes.microbatches; ++i) {
    writer.add(Kind::Forward, rank);
    writer.add(Kind::Backward, rank);
  }
  add_all(writer, Kind::Backward, rank, ahead);
  row.push_back({{Kind::ReduceGradient, rank, -1}});
}

void looped_bfs(Row& row, int rank, const Sizes& sizes) {
  idle(row, rank);
  Writer writer(row);
  for (int i = 0; i < sizes.stages_per_rank; ++i)
    add_all(writer, Kind::Forward, i * sizes.ranks + rank, sizes.microbatches);
  idle(row, 2 * (sizes.ranks - 1 - rank));
  for (int i = sizes.stages_per_rank - 1; i >= 0; --i)
    for (int microbatch = sizes.microbatches - 1; microbatch >= 0; --microbatch)
      row.push_back({{Kind::Backward, i * sizes.ranks + rank, microbatch}});
}

/// Interleaved stages take micro-batches in rounds. A round has as many as there are ranks, or as near as divides all.
int microbatches_of_round(const Sizes& sizes) {
  return sizes.microbatches / std::max(1, sizes.microbatches / sizes.ranks);
}

/// The stage of a rank's n-th forward, and of its n-th backward.
int forward_stage(int n, int rank, const Sizes& sizes) {
  return n / microbatches_of_round(sizes) % sizes.stages_per_rank * sizes.ranks + rank;
}
int backward_stage(int n, int rank, const Sizes& sizes) {
  const int from_last = n / microbatches_of_round(sizes) % sizes.stages_per_rank;
  return (sizes.stages_per_rank - 1 - from_last) * sizes.ranks + rank;
}

/// Forwards before the first backward; `a_hop`: more for each rank that is nearer to the first.
int warm_up(int rank, const Sizes& sizes, int a_hop) {
  const int forwards = (sizes.stages_per_rank - 1) * microbatches_of_round(sizes) + a_hop * (sizes.ranks - 1 - rank);
  return std::min(forwards, sizes.microbatches * sizes.stages_per_rank);
}

void interleaved_1f1b(Row& row, int rank, const Sizes& sizes) {
  const int all = sizes.microbatches * sizes.stages_per_rank, before = warm_up(rank, sizes, 2);
  idle(row, rank);
  Writer writer(row);
  for (int n = 0; n < before; ++n) writer.add(Kind::Forward, forward_stage(n, rank, sizes));
  // This lasts until the first backward has come back from the last rank.
  const int first_backward = sizes.stages_per_rank * sizes.ranks + 2 * (sizes.ranks - 1 - rank);
  if (before > 0) idle(row, first_backward - before - rank);
  for (int n = 0; n < all; ++n) {
    if (before + n < all)
      writer.add(Kind::Forward, forward_stage(before + n, rank, sizes));
    else
      idle(row, 1);
    writer.add(Kind::Backward, backward_stage(n, rank, sizes));
  }
}

/// Weight parts come `rank` input parts later: until then they would hold up the ranks before.
void interleaved_zero_bubble(Row& row, int rank, const Sizes& sizes) {
  const int all = sizes.microbatches * sizes.stages_per_rank, before = warm_up(rank, sizes, 1);
  idle(row, rank);
  Writer writer(row);
  for (int n = 0; n < before; ++n) writer.add(Kind::Forward, forward_stage(n, rank, sizes));
  if (before > 0) idle(row, sizes.ranks - rank - 1);
  for (int n = 0; n < all; ++n) {
    if (before + n < all) writer.add(Kind::Forward, forward_stage(before + n, rank, sizes));
    writer.add_input(backward_stage(n, rank, sizes));
    if (n >= rank) writer.add_waiting_weights();
  }
  for (int n = 0; n < rank; ++n) writer.add_waiting_weights();
}

/// Slots in which a forward would come before that of the stage below are put off, for all ranks in step.
void put_off_early_forwards(Schedule& schedule) {
  std::vector<Row> rows(schedule.rows.size());
  std::vector<size_t> next(schedule.rows.size());
  std::set<std::pair<int, int>> done;  // stage, micro-batch
  const auto is_over = [&](size_t rank) { return next[rank] == schedule.rows[rank].size(); };
  for (bool all_over = false; !all_over;) {
    all_over = true;
    std::vector<std::pair<int, int>> of_slot;
    for (size_t rank = 0; rank < rows.size(); ++rank) {
      if (is_over(rank)) continue;
      all_over = false;
      const Cell& cell = schedule.rows[rank][next[rank]];
      const bool is_forward = !cell.empty() && cell[0].kind == Kind::Forward;
      if (is_forward && cell[0].stage > 0 && !done.contains({cell[0].stage - 1, cell[0].microbatch})) {
        rows[rank].emplace_back();
        continue;
      }
      if (is_forward) of_slot.emplace_back(cell[0].stage, cell[0].microbatch);
      rows[rank].push_back(cell);
      ++next[rank];
    }
    done.insert(of_slot.begin(), of_slot.end());
  }
  schedule.rows = std::move(rows);
}

/// Stages lie in a V: a rank has one on the way down and one on the way up.
struct V {
  int down, up;
  V(int rank, int ranks) : down(rank), up(2 * ranks - 1 - rank) {}
};

void zbv(Row& row, int rank, const Sizes& sizes) {
  const V v(rank, sizes.ranks);
  const int microbatches = std::max(2 * sizes.ranks - 1, sizes.microbatches);  // those that there are not become idle
  idle(row, rank);
  Writer writer(row);
  const auto backward = [&](int stage) {
    writer.add(Kind::BackwardInput, stage);
    writer.add(Kind::BackwardWeight, stage);
  };
  const auto is_behind = [&](Kind kind, int stage, Kind of) {
    return writer.count(kind, stage) < writer.count(of, stage);
  };
  add_all(writer, Kind::Forward, v.down, 2 * (sizes.ranks - rank) - 1);
  for (int i = 0; i < rank; ++i) {
    writer.add(Kind::Forward, v.up);
    writer.add(Kind::Forward, v.down);
  }
  for (int i = 0; i < sizes.ranks - rank; ++i) {
    writer.add(Kind::Forward, v.up);
    backward(v.up);
  }
  while (writer.count(Kind::Forward, v.up) < microbatches) {
    if (writer.count(Kind::Forward, v.down) < microbatches) writer.add(Kind::Forward, v.down);
    backward(v.down);
    writer.add(Kind::Forward, v.up);
    backward(v.up);
  }
  for (int i = 0; i < rank; ++i) {
    writer.add(Kind::BackwardInput, v.down);
    writer.add(Kind::BackwardInput, v.up);
  }
  for (int i = 0; i < sizes.ranks - rank; ++i) {
    writer.add(Kind::BackwardInput, v.down);
    writer.add(Kind::BackwardWeight, v.down);
  }
  for (const int stage : {v.up, v.down})
    while (is_behind(Kind::BackwardWeight, stage, Kind::BackwardInput)) writer.add(Kind::BackwardWeight, stage);
  for (Cell& cell : row)
    if (!cell.empty() && cell[0].microbatch >= sizes.microbatches) cell.clear();
}

/// Forwards on one way beside backwards on the other.
void dualpipe_v(Row& row, int rank, const Sizes& sizes) {
  const V v(rank, sizes.ranks);
  const int below = sizes.ranks - 1 - rank;  // ranks
  Writer writer(row);
  add_all(writer, Kind::Forward, v.down, 2 * below);
  for (int i = 0; i <= rank; ++i) {
    writer.add(Kind::Forward, v.down);
    writer.add(Kind::Forward, v.up);
  }
  for (int i = 0; i < below; ++i) {
    writer.add_input(v.up);
    writer.add_waiting_weights();
    writer.add(Kind::Forward, v.up);
  }
  for (int i = 0; i < sizes.microbatches - 2 * sizes.ranks + rank + 1; ++i) {
    if (i == 0 && below == 0) {  // apart, the last rank begins its backward earlier
      writer.add(Kind::Forward, v.down);
      writer.add(Kind::Backward, v.up);
    } else {
      writer.add_together(v.down, v.up);
    }
    writer.add_together(v.up, v.down);
  }
  for (int i = 0; i < below; ++i) {
    writer.add(Kind::Backward, v.up);
    writer.add_together(v.up, v.down);
  }
  // From the middle on it takes only input parts: the weights fill the slots at the end.
  bool is_split = false;
  const auto backward = [&](int stage) { is_split ? writer.add_input(stage) : writer.add(Kind::Backward, stage); };
  const int middle = (rank + 1) / 2;
  for (int i = 0; i <= rank; ++i) {
    is_split = is_split || (i == middle && rank % 2 == 1);
    backward(v.up);
    is_split = is_split || (i == middle && rank % 2 == 0);
    backward(v.down);
  }
  for (int i = 0; i < below; ++i) {
    writer.add_waiting_weights();
    backward(v.down);
  }
  for (int i = 0; i <= rank; ++i) writer.add_waiting_weights();
}

void require_sizes(Named name, const Sizes& sizes) {
  const std::string_view schedule = word_of(name);
  if (sizes.ranks < 1 || sizes.microbatches < 1 || sizes.stages_per_rank < 1)
    throw InputError(
        fmt::format("{}: a pipeline of {} ranks, {} micro-batches and {} stages a rank; each must be at least 1",
                    schedule, sizes.ranks, sizes.microbatches, sizes.stages_per_rank));
  const int wanted = default_stages_per_rank(name);
  const bool takes_one_number = wanted == 1 || name == Named::Zbv || name == Named::DualPipeV;
  if (takes_one_number && sizes.stages_per_rank != wanted)
    throw InputError(fmt::format("{} has {} stage{} a rank, not {}", schedule, wanted, wanted == 1 ? "" : "s",
                                 sizes.stages_per_rank));
  const int least = name == Named::OneFOneB ? sizes.ranks : name == Named::DualPipeV ? 2 * sizes.ranks : 1;
  if (sizes.microbatches < least)
    throw InputError(fmt::format("{} needs at least as many micro-batches as stages: {}, not {}", schedule, least,
                                 sizes.microbatches));
  const bool has_rounds = name == Named::Interleaved1F1B || name == Named::InterleavedZeroBubble || name == Named::Zb1p;
  const int rounds = std::max(1, sizes.microbatches / sizes.ranks);
  if (has_rounds && sizes.microbatches % rounds != 0)
    throw InputError(
        fmt::format("{} takes micro-batches in rounds of about as many as there are ranks: {} micro-batches "
                    "are {} rounds on {} ranks and must be a multiple of that; use {} or {}",
                    schedule, sizes.microbatches, rounds, sizes.ranks, sizes.microbatches / rounds * rounds,
                    (sizes.microbatches / rounds + 1) * rounds));
}

using Write = void (*)(Row& row, int rank, const Sizes& sizes);

Write writer_of(Named name) {
  switch (name) {
    case Named::GPipe:
      return gpipe;
    case Named::OneFOneB:
      return one_f_one_b;
    case Named::LoopedBfs:
      return looped_bfs;
    case Named::Interleaved1F1B:
      return interleaved_1f1b;
    case Named::InterleavedZeroBubble:
    case Named::Zb1p:
      return interleaved_zero_bubble;
    case Named::Zbv:
      return zbv;
    case Named::DualPipeV:
      return dualpipe_v;
  }
  throw std::logic_error("make_schedule: no such schedule");
}

}  // namespace

std::optional<Named> named(std::string_view given) {
  for (const Word& each : kNames)
    if (given == each.ours || given == each.theirs) return each.name;
  return std::nullopt;
}

std::string_view word_of(Named name) {
  return word(name).ours;
}

std::string words() {
  std::string list;
  for (const Word& each : kNames) list += fmt::format("{}{}", list.empty() ? "" : ", ", each.ours);
  return list;
}

int default_stages_per_rank(Named name) {
  return word(name).stages_per_rank;
}

Schedule make_schedule(Named name, int ranks, int microbatches, int stages_per_rank) {
  const Sizes sizes{ranks, microbatches, stages_per_rank};
  require_sizes(name, sizes);
  Schedule schedule{.ranks = ranks, .stages = ranks * stages_per_rank, .microbatches = microbatches};
  schedule.rows.resize(static_cast<size_t>(ranks));
  const Write write = writer_of(name);
  for (int rank = 0; rank < ranks; ++rank) write(schedule.rows[static_cast<size_t>(rank)], rank, sizes);
  if (name == Named::InterleavedZeroBubble || name == Named::Zb1p) put_off_early_forwards(schedule);
  return schedule;
}

}  // namespace trainyard::pipeline
