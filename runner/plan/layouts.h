#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

// The search for the fastest layout of a job that fits.
namespace trainyard::train {

/// One way to lay a job out, with the same global batch.
struct Layout {
  MeshSize mesh;
  std::string switches;  ///< what makes it of the job: "--parallel.context 8"; "as given"
  uint64_t bytes = 0;    ///< of device memory a rank, the fixed part included
  double seconds = 0;    ///< of a step
  std::string why;       ///< where its time goes
};

struct Layouts {
  std::vector<Layout> best;  ///< the fastest first
  int tried = 0;             ///< simulations
  std::string least;         ///< what makes the layout that needs least memory
  uint64_t least_bytes = 0;  ///< of that
};

/// The fastest `most` layouts that fit job.hardware.memory: strategies, where no size of the mesh is given; parts of a
/// row (context parallelism) and of each layer (tensor parallelism, inside a node); rows at once; recomputation.
/// Everything else is as the job has it, and no layout is one whose switches would contradict that. Throws InputError
/// where the job as it is given is none.
Layouts best_layouts(const Job& job, size_t most = 5);

/// The same for people: a table, the switches of each, and what lies where in the fastest.
std::string layouts_text(const Job& job);

}  // namespace trainyard::train
