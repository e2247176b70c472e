#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nn/dropout.h"
#include "nn/module.h"

namespace trainyard::nn {

/// Low-rank adaptation (Hu et al. 2021), under PEFT's names.
struct Lora {
  int64_t rank = 0;
  double alpha = 0;    ///< what the adapter gives is multiplied by alpha / rank
  double dropout = 0;  ///< of the adapter's input, while it trains
  /// The linear layers of the blocks that get an adapter: by the end of their names, as q_proj, or all-linear.
  std::vector<std::string> target_modules = {};
  bool base_in_nf4 = false;  ///< the weights of the blocks' linear layers are in NF4 (QLoRA, Dettmers et al. 2023)

  [[nodiscard]] float scale() const { return static_cast<float>(alpha / static_cast<double>(rank)); }
};
inline constexpr std::string_view kAllLinear = "all-linear";

/// What stands beside a linear layer [out, in]: dropout(x) · Aᵀ · Bᵀ · scale, A [rank, in], B [out, rank]. It is zero
/// at first, as B is.
class LoraAdapter : public Module {
 public:
  /// `linear`: the name of the layer. `dropped`: what the pass under way drops, of all adapters; it outlives this.
  LoraAdapter(const std::string& linear, const Shape& weight, const Lora& lora, const DropoutContext& dropped);
  Variable operator()(const Variable& x) const;

 private:
  Parameter &a_, &b_;
  float scale_;
  DropoutSite dropout_;
  const DropoutContext& dropped_;
};

}  // namespace trainyard::nn
