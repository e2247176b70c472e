#pragma once

#include "data/batch.h"
#include "ops/cross_entropy.h"
#include "tensor/tensor.h"

namespace trainyard::models {

/// A batch where the model computes, and what the host has to make of it: with this loss() asks nothing of the host
/// any more. What is undefined in the batch is so here.
struct Inputs {
  Tensor input_ids;          ///< int32 [rows, tokens]
  Tensor position_ids;       ///< int32 [rows, tokens]
  Tensor document_starts;    ///< int32 [rows · tokens]: the index in its row at which each token's document begins
  Tensor input_lengths;      ///< int32 [rows]
  Tensor features;           ///< float32 [rows, …]
  Tensor sequences;          ///< int64 [rows]
  Tensor decoder_input_ids;  ///< int32 [rows, tokens], of an encoder-decoder
  ops::Targets targets;      ///< [rows · …]
  data::WholeRows whole;     ///< where the rows are parts of longer ones; document_starts are indices in those then
  int64_t valid_tokens = 0;

  Inputs() = default;
  /// All but decoder_input_ids, which only an encoder-decoder knows to make.
  Inputs(const data::Batch& batch, Device device);

  /// Whether loss() of both is the same work on other values.
  [[nodiscard]] bool is_like(const Inputs& other) const;
  /// Takes the values of `other`, which is like this one, into the memory that this one has on the device.
  void copy_values(const Inputs& other);
};

}  // namespace trainyard::models
