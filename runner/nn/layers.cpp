#include "nn/layers.h"

namespace trainyard::nn {
namespace {

void collect(Module& module, std::vector<Linear*>& layers) {
  if (auto* const linear = dynamic_cast<Linear*>(&module)) layers.push_back(linear);
  for (Module* const child : module.children()) collect(*child, layers);
}

}  // namespace

std::vector<Linear*> linear_layers(Module& module) {
  std::vector<Linear*> layers;
  collect(module, layers);
  return layers;
}

SwiGlu::SwiGlu(std::string name, int64_t hidden, int64_t ff, Init init)
    : Module(std::move(name)),
      gate_(name_of("gate_proj"), hidden, ff, init),
      up_(name_of("up_proj"), hidden, ff, init),
      down_(name_of("down_proj"), ff, hidden, init) {
  add_child(gate_);
  add_child(up_);
  add_child(down_);
}

}  // namespace trainyard::nn
