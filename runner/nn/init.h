#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "autograd/parameter.h"

namespace trainyard::nn {

/// Rows [row_begin, row_begin + rows) of a parameter's first values, row by row into `out` (rows · elements of a row;
/// a vector's elements are its rows). Each row has a random stream of its own, keyed by (seed, name, row): any rank
/// computes just its rows, and the model is the same whatever the number of ranks. Shared by this thread's team
/// (ops/threads.h).
void initial_rows(const autograd::Parameter& parameter, uint64_t seed, int64_t row_begin, int64_t rows,
                  std::span<float> out);

/// A number for a name, the same on every machine.
uint64_t hash_of(const std::string& name);

}  // namespace trainyard::nn
