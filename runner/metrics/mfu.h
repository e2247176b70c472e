#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace trainyard::metrics {

/// What the arithmetic of a decoder depends on.
struct ModelWork {
  int64_t matmul_parameters =
      0;  ///< those that are multiplied: the input embedding counts only where it is tied to the head
  int64_t layers = 0;
  int64_t heads = 0;  ///< of queries
  int64_t head_dim = 0;
  int64_t tokens = 0;  ///< a row: the sequence length
};

/// Floating-point operations of forward and backward for one token, as torchtitan counts them:
/// 6 · matmul_parameters + 6 · layers · heads · 2 · head_dim · tokens.
/// The attention term counts the whole square although half of it is masked; LLM.Q and llm.c halve it.
double flops_per_token(const ModelWork& work);

/// The formula in words, to be printed beside the first figure.
inline constexpr std::string_view kMfuFormula =
    "6N + 6·layers·heads·2·head_dim·tokens a token (causal half not deducted), over the peak";

/// Model FLOPs utilisation, a fraction. `peak_flops` is that of all ranks together, a second: of the data sheet, or
/// measured with matrix products on this machine; without one there is no MFU.
std::optional<double> mfu(double flops_per_sample, double samples_per_second, std::optional<double> peak_flops);

}  // namespace trainyard::metrics
