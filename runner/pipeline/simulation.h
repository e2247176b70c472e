#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "pipeline/schedule.h"

namespace trainyard::pipeline {

/// How long the actions of a stage take, in any unit. A whole backward takes both of its parts.
struct Times {
  double forward = 1, backward_input = 1, backward_weight = 1;
};

struct Timed {
  Action action;
  double begin = 0, end = 0;
};

/// A schedule that has been carried out on paper: each rank does what is next in its row as soon as what it needs is
/// there.
struct Simulation {
  std::vector<std::vector<Timed>> rows;  ///< by rank; of what computes
  double time = 0;                       ///< from the first action to the last
  double bubble = 0;                     ///< the share of that in which ranks do not compute
  std::vector<int>
      most_in_flight;  ///< by rank: micro-batches, on all of its stages, whose activations wait for backward
};

/// Throws InputError, beginning with `where`, for a schedule that cannot be carried out: an action that is missing or
/// twice there, a stage on two ranks, or cells that wait for each other, which are named.
Simulation simulate(const Schedule& schedule, const Times& times, const std::string& where);

/// A picture of it: a row a rank, numbers are micro-batches.
std::string to_svg(const Simulation& simulation, const std::string& title);

}  // namespace trainyard::pipeline
