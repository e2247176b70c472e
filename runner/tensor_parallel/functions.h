#pragma once

#include <string>

#include "autograd/tape.h"
#include "comm/communicator.h"
#include "tensor/chunk.h"

// What ranks of a tensor dimension exchange around split layers, as operations on the tape: each names its exchange
// forward and that of its way back (Shoeybi et al. 2019; Korthikanti et al. 2022). `label` names it in records. Waits.
namespace trainyard::tensor_parallel {

using autograd::Variable;

/// x itself, the same on every rank; back: the gradients of all ranks are added up.
Variable copy_to_ranks(comm::Communicator& ranks, const Variable& x, const std::string& label);

/// The sum of what the ranks give; back: the gradient as it comes, the same on every rank.
Variable sum_over_ranks(comm::Communicator& ranks, const Variable& x, const std::string& label);

/// With sequence parallelism a rank has a piece of the tokens, and all pieces are equally long: those behind the last
/// token are zeros.
///
/// Pieces [tokens, width] of all ranks, in rank order: [ranks · tokens, width]; back: each rank gets the sum of its
/// piece's gradients.
Variable gather_tokens(comm::Communicator& ranks, const Variable& piece, const std::string& label);

/// The sum of what the ranks give for all tokens [tokens, width], this rank's piece of it; back: the pieces' gradients
/// are gathered.
Variable scatter_token_sums(comm::Communicator& ranks, const Variable& x, const std::string& label);

/// How many tokens each piece has of `tokens` in all.
inline int64_t tokens_of_piece(const comm::Communicator& ranks, int64_t tokens) {
  return chunk_of(tokens, ranks.world(), 0).count;
}

/// Columns that are split as chunk_of() splits `columns`: [tokens, own] of each rank become [tokens, columns]; back:
/// this rank's columns of the gradient, which is the same on every rank.
Variable gather_columns(comm::Communicator& ranks, const Variable& x, int64_t columns, const std::string& label);

}  // namespace trainyard::tensor_parallel
