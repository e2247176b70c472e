#pragma once

#include <string>

#include "config/load.h"

namespace trainyard::cli {

struct Launched;  // session.h

/// Prints the plan of a run in place of the run, which `by` asked for ("--comm.mode"): for the ranks that `launched`
/// says, null: the environment, none of which is started; of more ranks than one, rank 0 alone prints. On a GPU as
/// `trainyard plan` takes it unless device.kind is cpu. Throws InputError as the plan does.
void plan_instead(const config::Loaded& loaded, const std::string& by, const Launched* launched);

}  // namespace trainyard::cli
