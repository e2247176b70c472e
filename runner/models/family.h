#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/config.h"
#include "models/fields.h"
#include "models/model.h"
#include "nn/placements.h"

namespace trainyard::models {

struct Preset {
  std::string name;  ///< "qwen3-0.6b"
  ModelConfig config;
};

/// All that sets a family of models apart, in a file of its own; registry.cpp lists them.
struct Family {
  std::string name;          ///< config.json's model_type
  std::string architecture;  ///< the class of transformers that loads it
  std::string block_class;   ///< its class of blocks, by which wrap policies name them
  std::vector<Preset> presets;
  /// config.json's fields; refuses what the family does not have. `family` is set afterwards.
  ModelConfig (*read)(const Fields& fields);
  /// config.json's fields in the published spelling, but for model_type and architectures.
  nlohmann::json (*write)(const ModelConfig& config);
  std::unique_ptr<Model> (*build)(const ModelConfig& config);
  nn::Placements placements = {};  ///< how tensor parallelism splits it; empty: not at all
  StoredNames stored = {};
  /// Its fields of config.json that act only in training and that its models honour.
  std::vector<std::string> trains_with = {};
  LearnsFrom learns_from = LearnsFrom::Text;
  /// flops_per_row where it is not a decoder's.
  double (*flops_per_row)(const ModelConfig& config, const RowLengths& lengths) = nullptr;
};

std::span<const Family* const> families();

/// Throws std::invalid_argument where there is none of this name.
const Family& family_of(const ModelConfig& config);

}  // namespace trainyard::models
