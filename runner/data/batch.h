#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace trainyard::data {

constexpr int32_t kIgnored = -100;  ///< a target that counts for nothing

/// What a batch whose rows are parts of longer ones says of those (context parallelism).
struct WholeRows {
  int64_t tokens = 0;      ///< of each; 0: the rows are whole themselves
  Tensor document_starts;  ///< int32 [whole rows · tokens]: for each token the index in its row of its document's first
                           ///< token; undefined: a row is one document
  Tensor own_document_starts{};  ///< int32 [rows · tokens] of the batch itself: those of its tokens; undefined as above
};

/// One rank's rows of one micro-batch, on the CPU: all that any model may be asked to learn from. A model reads what it
/// knows of; what it does not need stays undefined. A rank may have no row: then rows is 0 and all tensors are empty.
struct Batch {
  Tensor input_ids;           ///< int32 [rows, tokens]: a decoder's tokens, an encoder's source
  Tensor targets;             ///< int32 [rows, …]: what each position, or the row, must predict; kIgnored = nothing
  Tensor position_ids = {};   ///< int32 [rows, tokens], restarting at 0 with each document; undefined: one a row
  int64_t valid_tokens = 0;   ///< what the loss sum counts: targets that are not ignored; its sum over ranks and
                              ///< micro-batches is what a step's loss is divided by
  Tensor input_lengths = {};  ///< int32 [rows]: real tokens of each row of input_ids, padding follows; undefined: all
  Tensor features = {};       ///< float32 [rows, …]: inputs that are no tokens, such as images
  std::vector<int64_t> sequences = {};  ///< [rows]: each row's number in the run's endless order, which depends neither
                                        ///< on the number of ranks nor on accumulation: what random masks are keyed by
  WholeRows whole = {};
};

/// int32 [rows, tokens]: for each token the index in its row at which its document begins, which is where its position
/// is 0, or the row's beginning.
Tensor document_starts(const Tensor& position_ids);

/// How many of `targets`, int32 of any shape, are not ignored.
int64_t count_valid(const Tensor& targets);

}  // namespace trainyard::data
