#pragma once

#include <string>
#include <vector>

#include "config/load.h"

namespace trainyard::dialects {

/// config::load, which understands other programs' files and flags as well:
///   --config FILE           of `accelerate config` or a json of DeepSpeed's, recognised by their keys, or a .toml of
///                           torchtitan's
///   --deepspeed FILE or '{…}', --deepspeed_config FILE  that json; `--deepspeed` alone is DeepSpeed's own flag
///   --job.config_file FILE  torchtitan's; --section.key flags by its names then go before ours
///   --fsdp "…", --fsdp_config FILE or '{…}', and flags without a section, as the tables say (tables.h)
/// Files count in their order, flags over files, and both over what another program has where nothing is said, whatever
/// names each of them uses. Two flags that set one key to different values are refused, as two keys of one file are.
/// What a dialect derives (a warm-up that is a fraction of the steps) follows from what the run has in the end.
/// Throws InputError.
config::Loaded load(const std::vector<std::string>& arguments, const std::vector<config::YamlText>& first = {});

/// Those of the files that `arguments` name that `accelerate config` wrote, in order.
std::vector<std::string> accelerate_files(const std::vector<std::string>& arguments);

/// Whether `arguments` name a file of settings: ours, of `accelerate config`, a TOML, or a json of DeepSpeed's.
bool names_file(const std::vector<std::string>& arguments);

/// config::refuse, which knows of flags without a section that are near: of the tables, and `own` of the command, such
/// as "--demo".
void refuse(const std::vector<std::string>& rest, const std::vector<std::string>& own = {});

}  // namespace trainyard::dialects
