#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>

#include "autograd/parameter.h"

namespace trainyard::nn {

/// What PyTorch's layers begin with where nobody says otherwise, weights and biases alike: uniform within
/// ±inputs^-½ of one output.
inline autograd::Init uniform_init(int64_t inputs) {
  return {autograd::Init::Kind::Uniform, static_cast<float>(1 / std::sqrt(static_cast<double>(inputs)))};
}

/// Rows [row_begin, row_begin + rows) of a parameter's first values, row by row into `out` (rows · elements of a row;
/// a vector's elements are its rows). Each row has a random stream of its own, keyed by (seed, name, row): any rank
/// computes just its rows, and the model is the same whatever the number of ranks. Shared by this thread's team
/// (ops/threads.h).
void initial_rows(const autograd::Parameter& parameter, uint64_t seed, int64_t row_begin, int64_t rows,
                  std::span<float> out);

/// A number for a name, the same on every machine.
uint64_t hash_of(const std::string& name);

}  // namespace trainyard::nn
