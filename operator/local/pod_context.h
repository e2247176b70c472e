#pragma once

#include <string>

#include "api/job.h"
#include "local/manifest/expand.h"
#include "local/manifest/input.h"

namespace trainyard::local {

/// What a pod's object is read against. Borrows all of it.
struct PodContext {
  const api::Job& job;
  const Json& pod;  ///< as decide made it, with metadata.uid
  const Input& input;
  std::string node;  ///< this machine's name

  [[nodiscard]] std::string name() const { return text_at(pod, "/metadata/name"); }
  /// nullptr where there is none and the reference may do without. Throws Refusal where it may not.
  [[nodiscard]] const Entries* config_map(const Json& reference) const;
  [[nodiscard]] const Entries* secret(const Json& reference, const char* name_key = "name") const;
};

/// `fieldRef`: the value at a path as "metadata.labels['x']". Throws Refusal for a path that the API has not.
[[nodiscard]] std::string field_at(const std::string& path, const PodContext& context);
/// `resourceFieldRef`: of this container; where it sets none, what the machine has.
[[nodiscard]] std::string resource_field(const Json& reference, const Json& container);

/// A container's own variables (envFrom, then env, each with `$(…)` of those before it expanded), its services'
/// addresses rewritten. Throws Refusal, naming container and variable, where a reference leads nowhere.
[[nodiscard]] Variables environment_of(const Json& container, const PodContext& context);

}  // namespace trainyard::local
