#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Pipeline schedules: which rank computes what of which micro-batch, and in which order. A schedule is a value, made by
// a pure function or read from a file of PyTorch's format, and checked before anything starts.
namespace trainyard::pipeline {

/// What an action does with a micro-batch on a stage. The words of PyTorch's files stand beside.
enum class Kind : uint8_t {
  Forward,         ///< F
  Backward,        ///< B: both parts
  BackwardInput,   ///< I: the gradient of the stage's input alone
  BackwardWeight,  ///< W: the gradients of its weights
  SendForward,
  ReceiveForward,
  SendBackward,
  ReceiveBackward,  ///< SEND_F, RECV_F, SEND_B, RECV_B
  Unshard,
  Reshard,
  ReduceGradient,  ///< UNSHARD, RESHARD, REDUCE_GRAD: of a stage
};

/// Whether it is of a micro-batch, and not of a stage alone.
bool has_microbatch(Kind kind);
/// Whether it takes a rank's time: one of the first four.
bool computes(Kind kind);

struct Action {
  Kind kind = Kind::Forward;
  int stage = 0;
  int microbatch = -1;  ///< -1: of the stage alone
  auto operator<=>(const Action&) const = default;
};

/// A slot of a rank: nothing, an action, or a forward and a backward that run together.
using Cell = std::vector<Action>;

struct Schedule {
  int ranks = 0, stages = 0, microbatches = 0;
  std::vector<std::vector<Cell>> rows;  ///< by rank
};

/// The schedules that have a name.
enum class Named : uint8_t {
  GPipe,                  ///< Huang et al. 2019
  OneFOneB,               ///< Narayanan et al. 2019: one forward, one backward
  LoopedBfs,              ///< Lamy-Poirier 2023
  Interleaved1F1B,        ///< Narayanan et al. 2021
  InterleavedZeroBubble,  ///< Qi et al. 2023, with several stages a rank
  Zb1p,                   ///< the same with one
  Zbv,                    ///< Qi et al. 2024: stages in a V
  DualPipeV,              ///< DeepSeek 2025
};

/// Our word ("interleaved_1f1b") or PyTorch's ("Interleaved1F1B"); none: neither.
std::optional<Named> named(std::string_view word);
std::string_view word_of(Named name);
/// All of our words, with commas between.
std::string words();

/// How many stages a rank has where nobody says it.
int default_stages_per_rank(Named name);

/// Throws InputError where the schedule does not exist in these sizes, with what would be right.
Schedule make_schedule(Named name, int ranks, int microbatches, int stages_per_rank);

/// A row a rank, a cell a slot: "0F3", "1B0", "" idle, "(0F3;3B1)OVERLAP_F_B". As PyTorch writes them.
std::string to_csv(const Schedule& schedule);
/// Reads that, with cells of communication or without. Throws InputError, beginning with `where`, naming row and cell.
Schedule parse_csv(std::string_view text, const std::string& where);

std::string to_string(const Action& action);  ///< "0F3"
std::string to_string(const Cell& cell);      ///< "(0F3;3B1)OVERLAP_F_B"

}  // namespace trainyard::pipeline
