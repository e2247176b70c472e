#include "metrics/mfu.h"

namespace trainyard::metrics {

double flops_per_token(const ModelWork& work) {
  const double attention = 2.0 * static_cast<double>(work.layers) * static_cast<double>(work.heads) *
                           static_cast<double>(work.head_dim) * static_cast<double>(work.tokens);
  return 6.0 * (static_cast<double>(work.matmul_parameters) + attention);
}

std::optional<double> mfu(double flops_per_sample, double samples_per_second, std::optional<double> peak_flops) {
  if (!peak_flops || *peak_flops <= 0) return std::nullopt;
  return flops_per_sample * samples_per_second / *peak_flops;
}

}  // namespace trainyard::metrics
