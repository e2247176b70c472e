#pragma once

namespace trainyard::optim {

/// What to multiply gradients of global L2 norm `norm` by so that it is at most `limit`: min(1, limit / (norm + 1e-6)),
/// as torch.nn.utils.clip_grad_norm_. A limit of 0 clips nothing.
float clip_factor(double norm, double limit);

}  // namespace trainyard::optim
