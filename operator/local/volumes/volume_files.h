#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string_view>

#include "local/pod_context.h"

namespace trainyard::local {

/// Whether the volume is a configMap, a secret, a downwardAPI or a projection of them: files that are written out.
[[nodiscard]] bool is_written_volume(const Json& volume);
/// Writes them below `folder`. Throws Refusal where a reference leads nowhere.
void write_volume(const Json& volume, const PodContext& context, const std::filesystem::path& folder);

void write_volume_file(const std::filesystem::path& path, std::string_view content, mode_t mode);

}  // namespace trainyard::local
