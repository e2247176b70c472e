#include "assemble/adapters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/adapter.h"
#include "nn/layers.h"

namespace trainyard::train {
namespace {

/// PEFT's rule: the whole name, or its end from a dot on.
bool is_named(const nn::Linear& layer, const std::string& target) {
  return layer.name() == target || layer.name().ends_with("." + target);
}

std::vector<std::string> last_names_of(const std::vector<nn::Linear*>& layers) {
  std::set<std::string> names;
  for (const nn::Linear* const layer : layers) names.insert(layer->name().substr(layer->name().rfind('.') + 1));
  return {names.begin(), names.end()};
}

bool is_any_named(const std::vector<nn::Linear*>& layers, const std::string& target) {
  return std::ranges::any_of(layers, [&](const nn::Linear* layer) { return is_named(*layer, target); });
}

/// The names as a file of PEFT lists them.
std::vector<std::string> targets_of(const nn::Lora& lora, const std::vector<nn::Linear*>& layers) {
  const auto& given = lora.target_modules;
  if (std::ranges::find(given, nn::kAllLinear) != given.end()) return last_names_of(layers);
  if (!given.empty()) return given;
  return is_any_named(layers, "q") ? std::vector<std::string>{"q", "v"} : std::vector<std::string>{"q_proj", "v_proj"};
}

void require_layer(const std::string& target, const std::vector<nn::Linear*>& layers) {
  if (is_any_named(layers, target)) return;
  const auto names = last_names_of(layers);
  const auto near = nearest(target, names);
  throw InputError(fmt::format(
      "lora.target_modules: '{}' is no linear layer of this model's blocks{}; they are {}, and {} stands for all",
      target, near ? fmt::format(", did you mean '{}'?", *near) : "", fmt::join(names, ", "), nn::kAllLinear));
}

/// Keeps the weights of all the layers in NF4, adapted or not.
void keep_in_nf4(const std::vector<nn::Linear*>& layers) {
  for (const nn::Linear* const layer : layers) {
    autograd::Parameter& weight = layer->weight();
    if (const int64_t in = weight.whole_shape()[1]; in % ops::kNf4Block != 0)
      throw InputError(fmt::format(
          "lora.base_dtype is nf4, but {} is {}, whose rows of {} values are no whole blocks of {}; use bf16",
          weight.name(), to_string(weight.whole_shape()), in, ops::kNf4Block));
    weight.set_nf4();
  }
}

/// 16, and not 16.0, as PEFT writes it.
nlohmann::json number(double value) {
  return value == std::floor(value) && value < 1e15 ? nlohmann::json(static_cast<int64_t>(value))
                                                    : nlohmann::json(value);
}

}  // namespace

nlohmann::json to_peft(const nn::Lora& lora, const models::ModelConfig& model, const std::string& base) {
  return {{"peft_type", "LORA"},
          {"task_type", models::learns_from(model) == models::LearnsFrom::Pairs ? "SEQ_2_SEQ_LM" : "CAUSAL_LM"},
          {"base_model_name_or_path", base},
          {"r", lora.rank},
          {"lora_alpha", number(lora.alpha)},
          {"lora_dropout", lora.dropout},
          {"target_modules", lora.target_modules},
          {"bias", "none"},
          {"fan_in_fan_out", false},
          {"init_lora_weights", true},
          {"inference_mode", true},
          {"modules_to_save", nullptr},
          {"use_dora", false},
          {"use_rslora", false}};
}

Adapters::Adapters(models::Model& model, const nn::Lora& lora) : lora_(lora) {
  std::vector<nn::Linear*> layers;
  for (nn::Module* const block : model.blocks())
    std::ranges::copy(nn::linear_layers(*block), std::back_inserter(layers));
  for (autograd::Parameter* const parameter : model.parameters()) parameter->set_base();
  lora_.target_modules = targets_of(lora, layers);
  for (const std::string& target : lora_.target_modules) require_layer(target, layers);
  const auto is_target = [&](const nn::Linear& layer) {
    return std::ranges::any_of(lora_.target_modules, [&](const auto& target) { return is_named(layer, target); });
  };
  for (nn::Linear* const layer : layers)
    if (is_target(*layer)) layer->adapt(lora_, *dropped_);
  if (lora_.base_in_nf4) keep_in_nf4(layers);
  for (const autograd::Parameter* const parameter : model.parameters())
    if (!parameter->is_base()) parameters_ += count_of(parameter->whole_shape());
}

checkpoint::StoredAdapter open_start(const std::filesystem::path& path, const Adapters& adapters,
                                     const models::Model& model) {
  checkpoint::StoredAdapter stored = checkpoint::open_adapter(path);
  const auto fail = [&](const std::string& what) {
    throw InputError(fmt::format("lora.init_from: {}: {}", stored.path.string(), what));
  };
  const double scale = checkpoint::scale_of(stored),
               own = adapters.lora().alpha / static_cast<double>(adapters.lora().rank);
  if (const int64_t rank = stored.config.at("r"); rank != adapters.lora().rank)
    fail(fmt::format("has rank {}, and lora.rank is {}; set it to {}", rank, adapters.lora().rank, rank));
  if (static_cast<float>(scale) != static_cast<float>(own))
    fail(fmt::format(
        "multiplies what an adapter gives by {:g}, and lora.alpha / lora.rank is {:g}; set lora.alpha to {:g}", scale,
        own, scale * static_cast<double>(adapters.lora().rank)));
  size_t own_tensors = 0;
  for (const autograd::Parameter* const parameter : model.parameters()) {
    if (parameter->is_base()) continue;
    ++own_tensors;
    const std::string name = checkpoint::stored_name(stored, parameter->name());
    if (!stored.tensors->has(name))
      fail(fmt::format("has no {}, which lora.target_modules asks for", parameter->name()));
    if (const Shape shape = stored.tensors->shape(name); shape != parameter->whole_shape())
      fail(fmt::format("{} is {}, and here {}; is it another model's?", name, to_string(shape),
                       to_string(parameter->whole_shape())));
  }
  if (const size_t more = stored.tensors->names().size(); more != own_tensors)
    fail(fmt::format("has {} tensors, and this run's adapters are {}; name all its layers in lora.target_modules", more,
                     own_tensors));
  return stored;
}

void Adapters::begin_pass(const models::Inputs& inputs, uint64_t seed) {
  if (lora_.dropout > 0) *dropped_ = {static_cast<float>(lora_.dropout), seed, inputs.sequences};
}

std::string described(const Adapters& adapters) {
  const nn::Lora& lora = adapters.lora();
  return fmt::format("rank {}, alpha {}, on {}: {} parameters{}", lora.rank, lora.alpha,
                     fmt::join(lora.target_modules, ", "), with_thousands(adapters.parameters()),
                     lora.base_in_nf4 ? "; beside a base in NF4" : "");
}

}  // namespace trainyard::train
