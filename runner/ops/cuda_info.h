#pragma once

#include <string>

namespace trainyard::ops {

/// "9.19.0", or why this machine has none and what attention does then; "" in a build without CUDA.
std::string describe_cudnn();

}  // namespace trainyard::ops
