#include "local/manifest/offline.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "api/validate.h"
#include "decide/objects/names.h"
#include "local/manifest/check.h"
#include "local/manifest/input.h"

namespace trainyard::local {
namespace {

constexpr const char* kNoUid = "00000000-0000-0000-0000-000000000000";  // the API server gives the real one

api::Job new_job(const Document& document) {
  Json object = document.content;
  if (text_at(object, "/metadata/uid").empty()) object["metadata"]["uid"] = kNoUid;
  api::Job job = api::parse_job(object);
  api::set_defaults(job);
  return job;
}

/// Why the operator would make no pod of a job that is valid; "" where it would.
std::string why_without_pods(const Document& document, const api::Job& job) {
  if (decide::is_managed_elsewhere(job))
    return fmt::format("{}: job {} is for {} to run: the operator makes nothing of it",
                       document.place_of("spec.runPolicy.managedBy"), job.name, job.spec.run_policy.managed_by);
  if (job.spec.run_policy.suspend)
    return fmt::format("{}: job {} is suspended: the operator makes no pod of it",
                       document.place_of("spec.runPolicy.suspend"), job.name);
  return "";
}

std::vector<Json> objects_for(api::Job& job, const decide::Settings& settings) {
  std::vector<Json> objects;
  decide::Observed seen{.job = job};
  // What prepares comes first, and what it prepares for in the next plan at the latest.
  for (int round = 0;
       round < 10 && std::ranges::none_of(objects, [](const Json& each) { return each.value("kind", "") == "Pod"; });
       ++round) {
    const decide::Plan plan = decide::decide(seen, settings, TimePoint());
    for (const auto* const creates : {&plan.prepare, &plan.creates})
      for (const decide::Create& wanted : *creates) objects.push_back(wanted.object);
    if (plan.status) job.status = *plan.status;
    seen.token_is_there = seen.network_policy_is_there = true;
  }
  return objects;
}

}  // namespace

Validation validate_files(const std::vector<std::string>& files) {
  const Input input = read_input(files);
  Validation result{.problems = {}, .notes = input.ignored, .jobs = input.jobs.size()};
  for (const Document& job : input.jobs) {
    for (std::string& problem : problems_of(job)) result.problems.push_back(std::move(problem));
    for (std::string& warning : warnings_of(job)) result.notes.push_back(std::move(warning));
  }
  return result;
}

Rendering render_files(const std::vector<std::string>& files, const decide::Settings& settings, Format format) {
  const Input input = read_input(files);
  refuse_invalid(input.jobs);
  Rendering rendering;
  Json items = Json::array();
  for (const Document& document : input.jobs) {
    api::Job job = new_job(document);
    if (std::string why = why_without_pods(document, job); !why.empty()) rendering.notes.push_back(std::move(why));
    for (Json& object : objects_for(job, settings)) items.push_back(std::move(object));
  }
  if (format == Format::Json)
    rendering.text = Json{{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}}.dump(2) + "\n";
  else
    for (const Json& object : items) rendering.text += "---\n" + to_yaml(object);
  return rendering;
}

}  // namespace trainyard::local
