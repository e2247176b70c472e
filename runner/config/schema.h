#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/value.h"

// The one table of what can be set. YAML, flags, --help, --print-config, the JSON schema and docs/configuration.md are
// all made from it, so none of them can disagree with another.
namespace trainyard::config {

/// Whether all ranks of a job must have the same value. A difference in the others (where a rank keeps its cache, how
/// many threads it has) changes neither the mathematics nor the order of collectives.
enum class Agreement { AllRanks, PerRank };

struct Key {
  std::string section;
  std::string name;
  std::string help;  ///< one sentence or two, with the unit
  Rule rule;         ///< rule.type holds the default
  Agreement agreement = Agreement::AllRanks;
  std::function<Value(const Config&)> get;
  std::function<void(Config&, const Value&)> set;  ///< takes what parse_value(rule, …) gave

  [[nodiscard]] std::string full_name() const { return section + "." + name; }
};

struct SectionHelp {
  std::string name;
  std::string help;
};

/// Every section and every key, in the order of the documentation. Built once; safe from any thread.
std::span<const SectionHelp> sections();
std::span<const Key> keys();

/// The key `section.name`; null where there is none.
const Key* find_key(std::string_view full_name);

/// "did you mean training.steps?" for a key that does not exist, by the nearest spelling in its section or the same
/// name in another; empty where nothing is near. Names are given with `prefix` before them ("--" for flags).
std::string suggest_key(std::string_view section, std::string_view name, std::string_view prefix);

/// The same for a section.
std::string suggest_section(std::string_view section);

}  // namespace trainyard::config
