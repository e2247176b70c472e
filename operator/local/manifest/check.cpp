#include "local/manifest/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/job.h"
#include "api/validate.h"
#include "local/manifest/refusal.h"

namespace trainyard::local {

std::vector<std::string> lines_of(const Document& document, const api::Verdict& verdict) {
  std::vector<std::string> lines;
  for (const api::Violation& each : verdict.violations)
    lines.push_back(fmt::format("{}: {}{}{}", document.place_of(each.path), each.path, each.path.empty() ? "" : ": ",
                                each.message));
  return lines;
}

std::vector<std::string> problems_of(const Document& job) {
  api::Verdict verdict = api::validate_schema(job.content);
  // The webhook sees only what the schema lets through.
  if (verdict.is_allowed()) verdict = api::validate(job.content, nullptr);
  return lines_of(job, verdict);
}

std::vector<std::string> warnings_of(const Document& job) {
  std::vector<std::string> lines;
  for (const std::string& warning : api::validate(job.content, nullptr).warnings)
    lines.push_back(fmt::format("{}: warning: {}", job.place_of(""), warning));
  return lines;
}

void refuse_invalid(const std::vector<Document>& jobs) {
  std::vector<std::string> all;
  for (const Document& job : jobs)
    for (std::string& problem : problems_of(job)) all.push_back(std::move(problem));
  if (!all.empty()) throw Refusal(fmt::format("{}", fmt::join(all, "\n")));
}

}  // namespace trainyard::local
