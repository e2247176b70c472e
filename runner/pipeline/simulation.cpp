#include "pipeline/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "base/error.h"

namespace trainyard::pipeline {
namespace {

double time_of(Kind kind, const Times& times) {
  switch (kind) {
    case Kind::Forward:
      return times.forward;
    case Kind::BackwardInput:
      return times.backward_input;
    case Kind::BackwardWeight:
      return times.backward_weight;
    case Kind::Backward:
      return times.backward_input + times.backward_weight;
    default:
      return 0;
  }
}

class Simulator {
 public:
  Simulator(const Schedule& schedule, const Times& times, const std::string& where)
      : schedule_(schedule), times_(times), where_(where) {
    for (const auto& row : schedule.rows) {
      auto& actions = rows_.emplace_back();
      for (size_t slot = 0; slot < row.size(); ++slot)
        for (const Action& action : row[slot]) actions.push_back({action, slot + 1});
    }
    next_.resize(rows_.size());
    free_at_.resize(rows_.size());
  }

  Simulation carry_out() {
    require_complete();
    Simulation done{.rows = std::vector<std::vector<Timed>>(rows_.size())};
    for (bool moves = true; moves;) {
      moves = false;
      for (size_t rank = 0; rank < rows_.size(); ++rank)
        while (take_next(rank, done)) moves = true;
    }
    for (size_t rank = 0; rank < rows_.size(); ++rank)
      if (next_[rank] < rows_[rank].size()) throw InputError(stuck_text());
    return measured(std::move(done));
  }

 private:
  struct Placed {
    Action action;
    size_t slot;  ///< of the row, from 1
  };

  bool take_next(size_t rank, Simulation& done) {
    if (next_[rank] == rows_[rank].size()) return false;
    const Action& action = rows_[rank][next_[rank]].action;
    double begin = free_at_[rank];
    for (const Action& needed : needs_of(action)) {
      const auto end = end_of(needed);
      if (!end) return false;
      begin = std::max(begin, *end);
    }
    const double end = begin + time_of(action.kind, times_);
    ends_[action] = free_at_[rank] = end;
    if (computes(action.kind)) done.rows[rank].push_back({action, begin, end});
    ++next_[rank];
    return true;
  }

  /// What must be over before it.
  [[nodiscard]] std::vector<Action> needs_of(const Action& action) const {
    const auto of = [&action](Kind kind, int stage) { return Action{kind, stage, action.microbatch}; };
    const bool is_first = action.stage == 0, is_last = action.stage == schedule_.stages - 1;
    switch (action.kind) {
      case Kind::Forward:
        return is_first ? std::vector<Action>{} : std::vector{of(Kind::Forward, action.stage - 1)};
      case Kind::Backward:
      case Kind::BackwardInput:
        if (is_last) return {of(Kind::Forward, action.stage)};
        return {of(Kind::Forward, action.stage), of(Kind::Backward, action.stage + 1)};
      case Kind::BackwardWeight:
        return {of(Kind::BackwardInput, action.stage)};
      case Kind::SendForward:
        return {of(Kind::Forward, action.stage)};
      case Kind::SendBackward:
        return {of(Kind::Backward, action.stage)};
      case Kind::ReceiveForward:
        return is_first ? std::vector<Action>{} : std::vector{of(Kind::SendForward, action.stage - 1)};
      case Kind::ReceiveBackward:
        return is_last ? std::vector<Action>{} : std::vector{of(Kind::SendBackward, action.stage + 1)};
      case Kind::Unshard:
      case Kind::Reshard:
      case Kind::ReduceGradient:
        return {};
    }
    return {};
  }

  /// When it was over; none: not yet. For a backward its input part will do.
  [[nodiscard]] std::optional<double> end_of(const Action& action) const {
    auto found = ends_.find(action);
    if (found == ends_.end() && action.kind == Kind::Backward)
      found = ends_.find({Kind::BackwardInput, action.stage, action.microbatch});
    return found == ends_.end() ? std::nullopt : std::optional(found->second);
  }

  void require_complete() const {
    std::map<Action, size_t> rank_of;
    std::map<int, size_t> rank_of_stage;
    for (size_t rank = 0; rank < rows_.size(); ++rank)
      for (const Placed& placed : rows_[rank]) {
        if (const auto [other, is_new] = rank_of_stage.emplace(placed.action.stage, rank);
            !is_new && other->second != rank)
          throw InputError(fmt::format("{}: stage {} is on rank {} and, in cell {}, on rank {}; a stage is on one rank",
                                       where_, placed.action.stage, other->second, placed.slot, rank));
        if (has_microbatch(placed.action.kind) && !rank_of.emplace(placed.action, rank).second)
          throw InputError(fmt::format("{}: rank {}, cell {}: {} stands twice", where_, rank, placed.slot,
                                       to_string(placed.action)));
      }
    for (int stage = 0; stage < schedule_.stages; ++stage)
      for (int microbatch = 0; microbatch < schedule_.microbatches; ++microbatch)
        require_whole(rank_of, stage, microbatch);
  }

  void require_whole(const std::map<Action, size_t>& there, int stage, int microbatch) const {
    const auto has = [&](Kind kind) { return there.contains({kind, stage, microbatch}); };
    if (!has(Kind::Forward))
      throw InputError(
          fmt::format("{}: {}F{} is missing: each stage has a forward of each micro-batch", where_, stage, microbatch));
    const bool is_split = has(Kind::BackwardInput) && has(Kind::BackwardWeight);
    const bool is_mixed = has(Kind::Backward) && (has(Kind::BackwardInput) || has(Kind::BackwardWeight));
    if (is_mixed || (!is_split && !has(Kind::Backward)))
      throw InputError(fmt::format("{}: stage {} has {} of micro-batch {}; it needs a B, or an I and a W", where_,
                                   stage, is_mixed ? "a whole backward and a part" : "no whole backward", microbatch));
  }

  [[nodiscard]] std::string stuck_text() const {
    std::string text = where_ + ": it cannot end, as cells wait for each other:";
    for (size_t rank = 0; rank < rows_.size(); ++rank) {
      if (next_[rank] == rows_[rank].size()) continue;
      const Placed& placed = rows_[rank][next_[rank]];
      for (const Action& needed : needs_of(placed.action)) {
        if (end_of(needed)) continue;
        text += fmt::format(" rank {} in cell {} ({}) for {};", rank, placed.slot, to_string(placed.action),
                            to_string(needed));
        break;
      }
    }
    text.back() = '.';
    return text;
  }

  static Simulation measured(Simulation done) {
    double busy = 0;
    for (const auto& row : done.rows) {
      int in_flight = 0, most = 0;
      for (const Timed& each : row) {
        done.time = std::max(done.time, each.end);
        busy += each.end - each.begin;
        in_flight += each.action.kind == Kind::Forward ? 1 : each.action.kind == Kind::BackwardInput ? 0 : -1;
        most = std::max(most, in_flight);
      }
      done.most_in_flight.push_back(most);
    }
    done.bubble = done.time == 0 ? 0 : 1 - busy / (done.time * static_cast<double>(done.rows.size()));
    return done;
  }

  const Schedule& schedule_;
  const Times& times_;
  const std::string& where_;
  std::vector<std::vector<Placed>> rows_;
  std::vector<size_t> next_;
  std::vector<double> free_at_;
  std::map<Action, double> ends_;
};

const char* colour_of(Kind kind) {
  switch (kind) {
    case Kind::Forward:
      return "#8ab6e8";
    case Kind::Backward:
      return "#7bc48f";
    case Kind::BackwardInput:
      return "#a9dcb6";
    default:
      return "#e5c07b";
  }
}

}  // namespace

Simulation simulate(const Schedule& schedule, const Times& times, const std::string& where) {
  return Simulator(schedule, times, where).carry_out();
}

std::string to_svg(const Simulation& simulation, const std::string& title) {
  constexpr double kWidth = 1200, kHeight = 26, kLeft = 60, kTop = 40;
  const double scale = kWidth / std::max(simulation.time, 1e-9);
  const double height = kTop + kHeight * static_cast<double>(simulation.rows.size()) + 30;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{}\" y=\"22\" font-size=\"14\">{}</text>\n",
      kLeft + kWidth + 10, height, kLeft, title);
  for (size_t rank = 0; rank < simulation.rows.size(); ++rank) {
    const double y = kTop + kHeight * static_cast<double>(rank);
    svg += fmt::format("<text x=\"8\" y=\"{:.1f}\">rank {}</text>\n", y + 17, rank);
    for (const Timed& each : simulation.rows[rank]) {
      const double x = kLeft + each.begin * scale, width = (each.end - each.begin) * scale;
      svg += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" stroke=\"#555\" "
          "stroke-width=\"0.5\">"
          "<title>{}</title></rect>\n",
          x, y, width, kHeight - 3, colour_of(each.action.kind), to_string(each.action));
      if (width >= 14)
        svg += fmt::format("<text x=\"{:.2f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x + width / 2, y + 16,
                           each.action.microbatch);
    }
  }
  svg += fmt::format(
      "<text x=\"{}\" y=\"{:.1f}\">blue: forward; green: backward, light: for the input alone; yellow: for the "
      "weights. The "
      "bubble is {:.1f} %.</text>\n</svg>\n",
      kLeft, height - 10, simulation.bubble * 100);
  return svg;
}

}  // namespace trainyard::pipeline
