#pragma once

#include <string>

#include "autograd/parameter.h"
#include "autograd/tape.h"
#include "comm/communicator.h"

// Async tensor parallelism: the exchanges of functions.h in parts, each beside the products of the part before. The
// same values, in the same order of sums.
namespace trainyard::tensor_parallel {

using autograd::Variable;

/// gather_tokens() as a ring: a rank multiplies the tokens that it has while those of the rank before it arrive. Back:
/// the sums of gradients leave while the rest is multiplied.
Variable gather_tokens_by_ring(comm::Communicator& ranks, const Variable& piece, const std::string& label);

/// scatter_token_sums() of x · weightᵀ: what is multiplied leaves while the rest is multiplied. Back: the gradients of
/// the pieces arrive as a ring.
Variable product_scattered_in_parts(comm::Communicator& ranks, const Variable& x, autograd::Parameter& weight,
                                    const std::string& label);

}  // namespace trainyard::tensor_parallel
