#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "checkpoint/open_weights.h"
#include "models/model.h"
#include "nn/lora.h"

namespace trainyard::train {

/// The adapters of a model. All but them is the base, which stays as it is (Parameter::set_base()).
class Adapters {
 public:
  /// Puts adapters beside the layers that `lora` names, by default the query and value projections, before the model's
  /// parameters are placed. Throws InputError for a name that no linear layer of the blocks has.
  Adapters(models::Model& model, const nn::Lora& lora);

  /// Its target_modules are the ends of names that have been taken.
  [[nodiscard]] const nn::Lora& lora() const { return lora_; }
  [[nodiscard]] int64_t parameters() const { return parameters_; }

  /// From now to end_pass() inputs of adapters are dropped as the pass of these rows says. With a rate of 0: nothing.
  void begin_pass(const models::Inputs& inputs, uint64_t seed);
  void end_pass() { *dropped_ = {}; }

 private:
  nn::Lora lora_;
  std::unique_ptr<nn::DropoutContext> dropped_ = std::make_unique<nn::DropoutContext>();
  int64_t parameters_ = 0;
};

/// Adapters that somebody has trained, as those of `model` are to begin. Throws InputError, naming both sides, where
/// rank, scale, layers or shapes differ, and as checkpoint::open_adapter() and scale_of() do.
checkpoint::StoredAdapter open_start(const std::filesystem::path& path, const Adapters& adapters,
                                     const models::Model& model);

/// The adapter_config.json of adapters of `model`, as PEFT writes it; `base` is where its weights came from.
nlohmann::json to_peft(const nn::Lora& lora, const models::ModelConfig& model, const std::string& base);

/// "rank 8, alpha 16, on q_proj and v_proj: 1.2 M parameters": a row of the plan.
std::string described(const Adapters& adapters);

}  // namespace trainyard::train
