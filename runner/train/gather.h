#pragma once

#include <string>

#include "comm/communicator.h"
#include "shard/engine.h"

namespace trainyard::train {

/// The whole of a tensor of shape `whole`, from the rows of it that each rank of `sharders` holds as torch.chunk deals
/// them; `local` may have none. Collective. Beside the result it takes the memory of one rank's rows.
Tensor gather_rows(comm::Communicator& sharders, const Tensor& local, const Shape& whole, const std::string& label);

/// The whole of a parameter, or of what is like it, from this rank's rows of its part. Collective over the shard and
/// the tensor dimension. Beside the result it takes the memory of one part, and of 64 MiB of each rank of the tensor
/// dimension.
Tensor gather_whole(const shard::Mesh& mesh, const autograd::Parameter& parameter, const Tensor& local,
                    const std::string& label);

}  // namespace trainyard::train
