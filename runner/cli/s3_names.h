#pragma once

#include "cli/names.h"

namespace trainyard::cli {

/// Puts paths of the cache in place of the names of S3 ("s3://bucket/key") that a configuration has, and downloads what
/// is missing (s3/fetch.h); `pins` and `agreed` tell versions, as for names of the hub. Throws InputError for a name in
/// a key that takes none, and as s3::fetch does, naming the key.
void replace_s3_names(WithoutNames& result, NamesFor what);

}  // namespace trainyard::cli
