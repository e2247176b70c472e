#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/load.h"

// What the texts of parallel.precision and training.loss_scale say.
namespace trainyard::config {

/// What some groups have in place of parallel.param_dtype, reduce_dtype, output_dtype and cast_forward_inputs.
struct PrecisionRule {
  std::string pattern;            ///< a glob over the names of groups
  std::vector<Setting> settings;  ///< of those keys
};

/// The rules of a text such as `model.layers.[01]=fp32, root=bf16 output_dtype:fp32`. Throws InputError for what is no
/// rule, an unknown type or field, and a pattern or field that is there twice.
std::vector<PrecisionRule> precision_rules(const std::string& text);

/// The configuration of the groups that the rule is for.
Config with(Config config, const PrecisionRule& rule);

/// The number that training.loss_scale is; none where it is auto or none. Throws InputError for any other word, and for
/// a number that is not above 0.
std::optional<double> constant_loss_scale(const Training& training);

}  // namespace trainyard::config
