#pragma once

#include <string>
#include <vector>

#include "api/verdict.h"
#include "local/manifest/yaml.h"

namespace trainyard::local {

/// The violations, each "file:line: path: what".
[[nodiscard]] std::vector<std::string> lines_of(const Document& document, const api::Verdict& verdict);
/// What is wrong with a PyTorchJob by the resource's schema and the webhook's rules, as lines.
[[nodiscard]] std::vector<std::string> problems_of(const Document& job);
/// What the webhook would warn of, each "file:line: warning: what".
[[nodiscard]] std::vector<std::string> warnings_of(const Document& job);
/// Throws Refusal with all problems of all jobs, a line each.
void refuse_invalid(const std::vector<Document>& jobs);

}  // namespace trainyard::local
