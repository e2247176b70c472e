#pragma once

#include <string>

#include "comm/communicator.h"

namespace trainyard::train {

/// The whole of a tensor of shape `whole`, from the rows of it that each rank of `sharders` holds as torch.chunk deals
/// them; `local` may have none. Collective. Beside the result it takes the memory of one rank's rows.
Tensor gather_rows(comm::Communicator& sharders, const Tensor& local, const Shape& whole, const std::string& label);

}  // namespace trainyard::train
