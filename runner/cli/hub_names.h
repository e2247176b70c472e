#pragma once

#include <string>

#include "cli/names.h"
#include "config/load.h"

namespace trainyard::cli {

/// The one place where names are looked up: those of S3 (s3_names.h), and those of the hub in model.init_from,
/// model.config, data.tokenizer and data.path that are no path here. What is missing is downloaded, by the process of
/// this machine that comes first: ranks meet later,
/// so those that wait for another's download are waited for there (hub/fetch.h). Ranks that a launcher starts find all
/// in the cache, as it has looked before and pins the commits. Throws as hub::fetch does, naming the key, the path that
/// is not there, and why the hub has no such name.
WithoutNames without_names(const config::Loaded& given, NamesFor what);

/// For a flag that takes no names. Throws InputError, with the command that fetches it, where `value` is a name of S3,
/// or one of the hub and no path here.
void refuse_name(const std::string& flag, const std::string& value);

}  // namespace trainyard::cli
