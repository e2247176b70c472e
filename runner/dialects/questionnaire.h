#pragma once

#include <iosfwd>
#include <string>

namespace trainyard::dialects {

/// What `accelerate config` asks of a run with FSDP on CPUs or GPUs, in its order: prompts go to `out`, answers come
/// from `in`, a line each; an empty line is the default, an answer that does not fit is asked for again. Returns the
/// YAML, which Accelerate reads too. Throws InputError where the answers end too early.
std::string ask(std::istream& in, std::ostream& out);

}  // namespace trainyard::dialects
