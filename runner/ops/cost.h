#pragma once

#include <initializer_list>
#include <span>

#include "tensor/dry_run.h"
#include "tensor/tensor.h"

namespace trainyard::ops {

/// Tells a dry run, if there is one, what an op costs: the tensors that it reads or writes, each once, and the
/// arithmetic of its matrix products.
inline void tell_cost(std::span<const Tensor* const> touched, double matrix_flops = 0) {
  DryRun* const run = dry_run();
  if (!run) return;
  OperationCost cost{.matrix_flops = matrix_flops,
                     .factor_bytes = size_of(touched.front()->dtype()),
                     .on_host = touched.front()->device().kind == DeviceKind::Cpu};
  for (const Tensor* const tensor : touched) cost.bytes += static_cast<double>(tensor->bytes());
  run->operation(cost);
}
inline void tell_cost(std::initializer_list<const Tensor*> touched, double matrix_flops = 0) {
  tell_cost(std::span(touched.begin(), touched.size()), matrix_flops);
}

/// Whether a dry run is for a device that has kernels of its own: then those of the CPU take no scratch memory either.
inline bool runs_elsewhere() {
  return dry_run() && !dry_run()->on_cpu();
}

}  // namespace trainyard::ops
