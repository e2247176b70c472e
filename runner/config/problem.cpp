#include "config/problem.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "config/value.h"

namespace trainyard::config {

void refuse(const std::vector<Problem>& problems) {
  if (problems.empty()) return;
  const auto first = std::ranges::find_if(problems, &Problem::is_unknown);
  const Problem& told = first == problems.end() ? problems.front() : *first;
  std::string text = told.message;
  for (const bool is_unknown : {true, false}) {
    std::vector<std::string> keys;
    for (const Problem& each : problems)
      if (each.message != told.message && each.is_unknown == is_unknown) keys.push_back(shown(each.key));
    if (!keys.empty())
      text += fmt::format("; {} besides: {}", is_unknown ? "unknown" : "refused", fmt::join(keys, ", "));
  }
  throw InputError(text);
}

}  // namespace trainyard::config
