#pragma once

#include <string>
#include <vector>

#include "decide/plan.h"

namespace trainyard::local {

/// What is right or wrong with the jobs of the files, for people; `problems` is empty where all is right.
struct Validation {
  std::vector<std::string> problems;  ///< "job.yaml:14: spec…: what is wrong and what is allowed"
  std::vector<std::string> notes;     ///< warnings that the webhook would give, and what is left out
  size_t jobs = 0;
};
[[nodiscard]] Validation validate_files(const std::vector<std::string>& files);

enum class Format { Yaml, Json };
struct Rendering {
  std::string text;
  std::vector<std::string> notes;  ///< for which jobs there is no pod, and why
};
/// The objects that the operator would create for the jobs of the files on a cluster where there is none yet: the same
/// for the same input, but for names that generateName makes. Throws Refusal where a job is not valid.
[[nodiscard]] Rendering render_files(const std::vector<std::string>& files, const decide::Settings& settings,
                                     Format format);

}  // namespace trainyard::local
