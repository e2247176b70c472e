#pragma once

// The weights of ops/attention_parts.h, for the kernels of every device.
namespace trainyard::ops {

struct MergeWeights {
  float held, part;  ///< what the two outputs are multiplied by
  float lse;         ///< of both
};

/// `exp` and `log` are those of the device.
template <typename Exp, typename Log>
constexpr MergeWeights merge_weights(float lse, float part_lse, const Exp& exp, const Log& log) {
  const float most = lse > part_lse ? lse : part_lse;
  if (most - most != 0.0F) return {1.0F, 0.0F, lse};  // both are −infinity: no key was seen
  const float of_held = exp(lse - most), of_part = exp(part_lse - most), sum = of_held + of_part;
  return {of_held / sum, of_part / sum, most + log(sum)};
}

}  // namespace trainyard::ops
