#pragma once

#include "autograd/parameter.h"
#include "tensor/chunk.h"
#include "tensor/tensor.h"

namespace trainyard::shard {

/// This rank's rows of one parameter.
struct ParameterShard {
  autograd::Parameter* parameter;
  Rows rows;        ///< of dim 0 of what is here of the parameter
  Rows counted;     ///< of these rows, counted from the first: those that no lower rank of the tensor dimension has too
  Tensor value;     ///< [rows, …]: a view of the shard; float32, of a base as Policy::base_dtype says, in
                    ///< NF4 its packed rows
  Tensor gradient;  ///< float32 [rows, …]; valid while its group has a gradient; undefined where frozen
};

}  // namespace trainyard::shard
