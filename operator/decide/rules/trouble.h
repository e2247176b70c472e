#pragma once

#include <string>

#include "decide/draft.h"

namespace trainyard::decide {

/// What the Trouble condition says, and what is wanted beside: events, questions to nodes, another look.
struct Trouble {
  std::string reason, message;  ///< "": nothing is wrong
  Plan wants{};
};

/// What is wrong with the job's pods and nodes: cause, place, next step. Waiting is reported, never punished.
[[nodiscard]] Trouble trouble_of(const Draft& draft);

}  // namespace trainyard::decide
