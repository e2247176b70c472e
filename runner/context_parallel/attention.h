#pragma once

#include <memory>

#include "comm/communicator.h"
#include "data/row_parts.h"
#include "nn/attention.h"

// Context parallelism: attention of rows whose tokens are split among ranks. What a rank has of a row says
// data/row_parts.h; all but attention works on a rank's own tokens alone.
namespace trainyard::context_parallel {

/// How queries see the keys and values of other ranks.
enum class Method {
  Ring,       ///< they pass from rank to rank, each exchange behind the attention of the one before (Liu 2023)
  AllGather,  ///< they are gathered (Llama 3, 2024)
  Ulysses,    ///< each rank gets all tokens of some heads (Jacobs 2023)
};

/// `context`: the ranks that share rows, of which each has what `parts` says; it outlives what is made. With Ulysses
/// they must divide the query heads.
std::unique_ptr<nn::SplitAttention> make_attention(comm::Communicator& context, Method method, data::RowParts parts);

}  // namespace trainyard::context_parallel
