#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace trainyard::comm {

enum class Collective { AllReduce, AllGather, ReduceScatter, Broadcast, AllToAll };

/// What is timed, as nccl-tests names it: sizes from `min_bytes` to `max_bytes`, each `factor` times the one before, or
/// `step_bytes` more where that is given.
struct BenchPlan {
  std::vector<Collective> collectives;
  int64_t min_bytes = 8, max_bytes = int64_t{128} << 20;
  int64_t factor = 2, step_bytes = 0;
  int iterations = 20, warmup = 5;
  DType dtype = DType::Float32;
  bool checks = true;  ///< every element of the last result, against a formula of (rank, index)
  Device device = {};  ///< where the tensors lie
};

/// One size of one collective. A size is the whole side: what an all_gather ends with, what a reduce_scatter begins
/// with.
struct Measurement {
  int64_t bytes = 0, elements = 0;  ///< elements a rank gives (all_gather, all_to_all: to each) or gets
  double seconds = 0;               ///< of one, on the slowest rank
  int64_t wrong = 0;                ///< elements over all ranks
};

/// Bytes of the whole side a second.
double algorithm_bandwidth(const Measurement& measured);
/// That, times what each rank's link must carry of it: 2(n-1)/n of an all_reduce, (n-1)/n of the others but a
/// broadcast, as nccl-tests computes it. Compares with the speed of the link whatever the number of ranks.
double bus_bandwidth(Collective collective, const Measurement& measured, int world);

/// Throws InputError where the sizes of `plan` are none.
void check_bench(const BenchPlan& plan);

/// Times what `plan` says and prints nccl-tests' table through `print`, line by line, on rank 0. Collective. Returns
/// the elements that were wrong, over all ranks. Needs twice `max_bytes` of memory. Throws InputError where the sizes
/// are none.
int64_t run_bench(Communicator& comm, const BenchPlan& plan, const std::function<void(const std::string&)>& print);

}  // namespace trainyard::comm
