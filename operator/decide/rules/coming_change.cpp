#include "decide/rules/coming_change.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <utility>

#include "decide/objects/names.h"

namespace trainyard::decide {
namespace {

using Digests = std::map<api::ReplicaType, std::string>;

Digests digests_now(const api::Job& job) {
  Digests digests;
  for (const auto& [type, spec] : job.spec.replicas) digests[type] = template_digest_of(spec);
  return digests;
}

/// Pods that are going, or have ended, are made anew by what the job says, or never.
bool runs_another(const Replica& replica, const Draft& draft, const Digests& now) {
  const api::Pod* const pod = replica.pod;
  if (!pod || pod->deleted || has_ended(*pod) || !is_current(*pod, draft.status)) return false;
  return !pod->template_digest.empty() && pod->template_digest != now.at(replica.type);
}

std::string who_takes_it(const Draft& draft) {
  return draft.scope == RestartScope::Gang ? "the next generation, after a failure or a restart,"
                                           : "each pod that is made anew";
}

ComingChange change_of(const Draft& draft, const char* reason, std::string message, const std::string& which) {
  return {reason, std::move(message), fmt::format("{} {} {}", reason, draft.status.restarts.generation, which)};
}

std::optional<ComingChange> template_change(const Draft& draft) {
  const Digests now = digests_now(draft.job());
  Digests changed;
  for (const Replica& replica : draft.gang.replicas)
    if (runs_another(replica, draft, now)) changed[replica.type] = now.at(replica.type);
  if (changed.empty()) return std::nullopt;
  std::vector<std::string> types, digests;
  for (const auto& [type, digest] : changed) {
    types.emplace_back(api::name_of(type));
    digests.push_back(digest);
  }
  return change_of(
      draft, "TemplateChanged",
      fmt::format("the pod template of {} has changed since its pods were made: they go on with what they began with, "
                  "and {} is made by the new one; to have it now suspend the job and resume it, or else put the "
                  "template back",
                  fmt::join(types, " and "), who_takes_it(draft)),
      fmt::format("{}", fmt::join(digests, " ")));
}

/// The operator sees no file: rank 0 knows what it read, and looks whether it is still so.
std::optional<ComingChange> config_change(const Draft& draft) {
  const auto& progress = draft.status.progress;
  if (!progress || progress->config_changed.empty()) return std::nullopt;
  return change_of(
      draft, "ConfigChanged",
      fmt::format("the configuration has changed since rank 0 read it: {}; the job goes on with what it began with, "
                  "and {} takes the new one; to have it now suspend the job and resume it, or else put it back",
                  progress->config_changed, who_takes_it(draft)),
      progress->config_changed);
}

}  // namespace

std::vector<ComingChange> coming_changes(const Draft& draft) {
  std::vector<ComingChange> changes;
  if (auto of_template = template_change(draft)) changes.push_back(std::move(*of_template));
  if (auto of_config = config_change(draft)) changes.push_back(std::move(*of_config));
  return changes;
}

}  // namespace trainyard::decide
