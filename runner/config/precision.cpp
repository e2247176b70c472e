#include "config/precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "config/schema.h"

namespace trainyard::config {
namespace {

constexpr std::string_view kFields[] = {"param_dtype", "reduce_dtype", "output_dtype", "cast_forward_inputs"};

/// "fp32" is param_dtype:fp32.
Setting setting_of(const std::string& word, const std::string& pattern) {
  const size_t colon = word.find(':');
  const std::string field = colon == std::string::npos ? "param_dtype" : word.substr(0, colon);
  if (std::ranges::find(kFields, field) == std::end(kFields))
    throw InputError(
        fmt::format("'{}' of {} is unknown; use {}", shown(field), shown(pattern), fmt::join(kFields, ", ")));
  const Key* const key = find_key("parallel." + field);
  const std::string value = colon == std::string::npos ? word : word.substr(colon + 1);
  return {key, parse_value(key->rule, value, fmt::format("{} of {}", field, shown(pattern))), ""};
}

PrecisionRule rule_of(const std::string& text) {
  const size_t equals = text.find('=');
  PrecisionRule rule{std::string(trim(text.substr(0, equals))), {}};
  if (equals != std::string::npos)
    for (const std::string& each : split(text.substr(equals + 1), ' ')) {
      const std::string word(trim(each));
      if (word.empty()) continue;
      rule.settings.push_back(setting_of(word, rule.pattern));
      const Key* const key = rule.settings.back().key;
      if (std::ranges::count(rule.settings, key, &Setting::key) > 1)
        throw InputError(fmt::format("{} of {} is given twice; keep one", key->name, shown(rule.pattern)));
    }
  if (rule.pattern.empty() || rule.settings.empty())
    throw InputError(fmt::format("'{}' is no rule; write pattern=type, such as model.layers.0=fp32",
                                 shown(std::string(trim(text)))));
  return rule;
}

}  // namespace

std::vector<PrecisionRule> precision_rules(const std::string& text) {
  std::vector<PrecisionRule> rules;
  if (trim(text).empty()) return rules;
  for (const std::string& each : split(text, ',')) {
    PrecisionRule rule = rule_of(each);
    if (std::ranges::count(rules, rule.pattern, &PrecisionRule::pattern) > 0)
      throw InputError(fmt::format("the pattern {} is given twice; keep one", shown(rule.pattern)));
    rules.push_back(std::move(rule));
  }
  return rules;
}

Config with(Config config, const PrecisionRule& rule) {
  for (const Setting& setting : rule.settings) setting.key->set(config, setting.value);
  return config;
}

std::optional<double> constant_loss_scale(const Training& training) {
  if (training.loss_scale == "auto" || training.loss_scale == "none") return std::nullopt;
  const Rule number{1.0, {.min = 0, .max = 1e30, .above_min = true}, {}};
  try {
    return std::get<double>(parse_value(number, training.loss_scale, ""));
  } catch (const InputError&) {
    throw InputError(fmt::format("'{}' is none of auto, none and a number above 0", shown(training.loss_scale)));
  }
}

}  // namespace trainyard::config
