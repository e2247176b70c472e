#include "local/offline.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "api/validate.h"
#include "local/check.h"
#include "local/input.h"

namespace trainyard::local {
namespace {

constexpr const char* kNoUid = "00000000-0000-0000-0000-000000000000";  // the API server gives the real one

std::vector<Json> objects_for(const Document& document, const decide::Settings& settings) {
  Json object = document.content;
  object["metadata"]["namespace"] = namespace_of(object);
  if (text_at(object, "/metadata/uid").empty()) object["metadata"]["uid"] = kNoUid;
  object.erase("status");
  api::Job job = api::parse_job(object);
  api::set_defaults(job);
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

std::string render_files(const std::vector<std::string>& files, const decide::Settings& settings, Format format) {
  const Input input = read_input(files);
  refuse_invalid(input.jobs);
  Json items = Json::array();
  for (const Document& job : input.jobs)
    for (Json& object : objects_for(job, settings)) items.push_back(std::move(object));
  if (format == Format::Json)
    return Json{{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}}.dump(2) + "\n";
  std::string text;
  for (const Json& object : items) text += "---\n" + to_yaml(object);
  return text;
}

}  // namespace trainyard::local
