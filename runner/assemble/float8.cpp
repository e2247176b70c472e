#include "assemble/float8.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/text.h"
#include "config/schema.h"
#include "config/value.h"
#include "nn/layers.h"

namespace trainyard::train {
namespace {

bool holds(const std::string& name, const std::string& part) {
  return name.find(part) != std::string::npos;
}

void require_matches(const std::vector<std::string>& filters, const std::vector<nn::Linear*>& layers) {
  for (const std::string& filter : filters)
    if (std::ranges::none_of(layers, [&](const nn::Linear* layer) { return holds(layer->name(), filter); }))
      throw InputError(fmt::format("float8.filter_fqns: '{}' is in the name of no linear layer of this model{}", filter,
                                   layers.empty() ? "" : "; its first is " + layers.front()->name()));
}

bool has_even_sizes(const nn::Linear& layer) {
  const Shape& shape = layer.weight().shape();
  return std::ranges::all_of(shape, [](int64_t size) { return size % 16 == 0; });
}

}  // namespace

Float8Model convert_to_float8(models::Model& model, const Float8Layers& wanted) {
  const std::vector<nn::Linear*> all = nn::linear_layers(model);
  require_matches(wanted.filter_fqns, all);
  std::vector<nn::Linear*> in_blocks;
  for (nn::Module* const block : model.blocks())
    std::ranges::copy(nn::linear_layers(*block), std::back_inserter(in_blocks));
  Float8Model made;
  for (nn::Linear* const layer : all) {
    const bool is_filtered = std::ranges::any_of(
        wanted.filter_fqns, [&](const std::string& filter) { return holds(layer->name(), filter); });
    if (is_filtered || !has_even_sizes(*layer) || std::ranges::find(in_blocks, layer) == in_blocks.end()) {
      made.others.push_back(layer->name());
      continue;
    }
    layer->weight().set_float8(wanted.recipe);
    ++made.converted;
  }
  if (made.converted == 0)
    throw InputError(fmt::format(
        "float8.recipe: none of this model's {} linear layers can be computed in 8 bits: they are filtered, "
        "outside of its blocks, or have a size that is no multiple of 16; use none",
        all.size()));
  return made;
}

std::string described(const Float8Model& model) {
  const auto others = std::ssize(model.others);
  return fmt::format("{} of {} linear layers{}", model.converted, model.converted + others,
                     others == 0 ? "" : "; not " + shortened(model.others));
}

void check_float8(const config::Loaded& loaded, const DeviceProperties& device) {
  if (loaded.config.float8.recipe == config::Float8Recipe::None || multiplies_float8(device)) return;
  const auto recipe = config::find_key("float8.recipe")->get(loaded.config);
  throw InputError(fmt::format(
      "{} is {}, but {} has compute capability {}.{}, and products in 8 bits need 8.9; leave it "
      "out",
      loaded.subject("float8.recipe"), config::format_value(recipe), device.name, device.major, device.minor));
}

}  // namespace trainyard::train
