#include "pipeline/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::pipeline {
namespace {

constexpr std::array kKinds = std::to_array<std::pair<Kind, std::string_view>>({
    {Kind::Forward, "F"},
    {Kind::Backward, "B"},
    {Kind::BackwardInput, "I"},
    {Kind::BackwardWeight, "W"},
    {Kind::SendForward, "SEND_F"},
    {Kind::ReceiveForward, "RECV_F"},
    {Kind::SendBackward, "SEND_B"},
    {Kind::ReceiveBackward, "RECV_B"},
    {Kind::Unshard, "UNSHARD"},
    {Kind::Reshard, "RESHARD"},
    {Kind::ReduceGradient, "REDUCE_GRAD"},
});
constexpr std::string_view kTogether = "OVERLAP_F_B";
constexpr int64_t kMost = 1 << 20;  // ranks, stages and micro-batches of a file

/// The digits in front of `text`, which it loses; none: there are none, or too many.
std::optional<int> take_number(std::string_view& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = digits == 0 || digits > 7 ? std::nullopt : parse_int(text.substr(0, digits));
  if (!number || *number >= kMost) return std::nullopt;
  text.remove_prefix(digits);
  return static_cast<int>(*number);
}

std::optional<Action> parse_action(std::string_view text) {
  const auto stage = take_number(text);
  if (!stage) return std::nullopt;
  const std::string_view letters = text.substr(0, std::min(text.find_first_of("0123456789"), text.size()));
  const auto kind = std::ranges::find(kKinds, letters, &std::pair<Kind, std::string_view>::second);
  if (kind == kKinds.end()) return std::nullopt;
  text.remove_prefix(letters.size());
  if (text.empty() && !has_microbatch(kind->first)) return Action{kind->first, *stage, -1};
  const auto microbatch = take_number(text);
  if (!microbatch || !text.empty() || !has_microbatch(kind->first)) return std::nullopt;
  return Action{kind->first, *stage, *microbatch};
}

std::optional<Cell> parse_cell(std::string_view text) {
  if (text.empty()) return Cell();
  if (!text.starts_with('(')) {
    const auto action = parse_action(text);
    return action ? std::optional(Cell{*action}) : std::nullopt;
  }
  const size_t middle = text.find(';'), end = text.find(')');
  if (middle == std::string_view::npos || end == std::string_view::npos || middle > end ||
      text.substr(end + 1) != kTogether)
    return std::nullopt;
  const auto first = parse_action(text.substr(1, middle - 1)),
             second = parse_action(text.substr(middle + 1, end - middle - 1));
  if (!first || !second || !computes(first->kind) || !computes(second->kind)) return std::nullopt;
  return Cell{*first, *second};
}

}  // namespace

bool computes(Kind kind) {
  return kind == Kind::Forward || kind == Kind::Backward || kind == Kind::BackwardInput || kind == Kind::BackwardWeight;
}

bool has_microbatch(Kind kind) {
  return kind != Kind::Unshard && kind != Kind::Reshard && kind != Kind::ReduceGradient;
}

std::string to_string(const Action& action) {
  const auto word = std::ranges::find(kKinds, action.kind, &std::pair<Kind, std::string_view>::first);
  return fmt::format("{}{}{}", action.stage, word->second,
                     action.microbatch < 0 ? "" : fmt::to_string(action.microbatch));
}

std::string to_string(const Cell& cell) {
  if (cell.empty()) return "";
  if (cell.size() == 1) return to_string(cell[0]);
  return fmt::format("({};{}){}", to_string(cell[0]), to_string(cell[1]), kTogether);
}

std::string to_csv(const Schedule& schedule) {
  std::string text;
  for (const auto& row : schedule.rows) {
    const auto last = std::find_if(row.rbegin(), row.rend(), [](const Cell& cell) { return !cell.empty(); });
    for (auto cell = row.begin(); cell != last.base(); ++cell)
      text += fmt::format("{}{}", cell == row.begin() ? "" : ",", to_string(*cell));
    text += '\n';
  }
  return text;
}

Schedule parse_csv(std::string_view text, const std::string& where) {
  Schedule schedule;
  for (const std::string& line : split(text, '\n')) {
    const std::string_view row_text = trim(line);
    if (row_text.empty()) continue;
    auto& row = schedule.rows.emplace_back();
    for (const std::string& cell_text : split(row_text, ',')) {
      const auto cell = parse_cell(trim(cell_text));
      if (!cell)
        throw InputError(
            fmt::format("{}: row {}, cell {} is '{}'; use a stage, F, B, I or W and a micro-batch such as 0F3, "
                        "nothing, (0F3;3B1)OVERLAP_F_B, or PyTorch's cells of communication",
                        where, schedule.rows.size(), row.size() + 1, cell_text.substr(0, 40)));
      for (const Action& action : *cell) {
        schedule.stages = std::max(schedule.stages, action.stage + 1);
        schedule.microbatches = std::max(schedule.microbatches, action.microbatch + 1);
      }
      row.push_back(*cell);
    }
    if (std::ranges::all_of(row, &Cell::empty))
      throw InputError(fmt::format("{}: row {} has no action; a row is a rank, which has one at least", where,
                                   schedule.rows.size()));
  }
  schedule.ranks = static_cast<int>(schedule.rows.size());
  if (schedule.stages == 0 || schedule.microbatches == 0)
    throw InputError(where + ": there is no action in it; a row is a rank, a cell such as 0F0 a slot");
  return schedule;
}

}  // namespace trainyard::pipeline
