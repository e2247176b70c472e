#pragma once

#include <memory>

#include "comm/communicator.h"
#include "nn/attention.h"
#include "nn/output_head.h"
#include "nn/placements.h"

// Tensor parallelism around a model that knows nothing of it: its table of placements (nn/placements.h) says which
// weights are split, and the exchanges stand before and behind its regions.
namespace trainyard::tensor_parallel {

struct Options {
  /// Norms, dropout and residuals are split by tokens among the ranks (Korthikanti et al. 2022), so that a region's
  /// input is gathered and its output reduce-scattered. False: each rank has all tokens, and outputs are all-reduced.
  bool sequence_parallel = true;
  /// The loss is computed where the vocabulary is split. False: whole logits are gathered on each rank.
  bool loss_parallel = true;
  /// Exchanges go in parts, each beside the products of the part before (async.h). With sequence_parallel alone.
  bool is_async = false;
};

/// Splits the parameters below `model` and puts the exchanges around its regions. Before its parameters are placed.
/// `heads` are the model's; their number must divide by the ranks. A KV head that the query heads of several ranks need
/// is on each of them. `ranks`, the tensor dimension, outlives the model.
void parallelize(nn::Module& model, const nn::Placements& placements, const nn::Heads& heads, comm::Communicator& ranks,
                 const Options& options);

/// The head of a model with the vocabulary split, which then has `vocab` ids in all.
std::unique_ptr<nn::OutputHead> make_output_head(comm::Communicator& ranks, int64_t vocab, const Options& options);

}  // namespace trainyard::tensor_parallel
