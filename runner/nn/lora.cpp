#include "nn/lora.h"

#include "autograd/functions.h"
#include "nn/init.h"

namespace trainyard::nn {

LoraAdapter::LoraAdapter(const std::string& linear, const Shape& weight, const Lora& lora,
                         const DropoutContext& dropped)
    : Module(linear),
      a_(add_parameter("lora_A.weight", {lora.rank, weight[1]}, uniform_init(weight[1]))),
      b_(add_parameter("lora_B.weight", {weight[0], lora.rank}, autograd::kZeros)),
      scale_(lora.scale()),
      dropout_(linear + ".lora_dropout"),
      dropped_(dropped) {}

Variable LoraAdapter::operator()(const Variable& x) const {
  return run(x, [this](const Variable& input) {
    return autograd::scale(autograd::linear(autograd::linear(dropout_(input, dropped_), a_), b_), scale_);
  });
}

}  // namespace trainyard::nn
