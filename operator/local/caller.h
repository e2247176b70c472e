#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "local/manifest/expand.h"

namespace trainyard::local {

/// Marks what a container has started, also where it left the container's process group.
inline constexpr const char* kContainerMark = "TRAINYARD_LOCAL_CONTAINER";

/// The environment that this program was started with, freed of all that places a rank in a world, and `variables`
/// over it. This program's own folder ends its PATH, so that the `trainyard` beside it is found.
[[nodiscard]] std::vector<std::string> environment_with(const Variables& variables);

/// Whether a program of this name is found on such a PATH.
[[nodiscard]] bool is_on_path(const std::string& program);

/// The folder of this program's file.
[[nodiscard]] std::string own_folder();
/// This machine's name.
[[nodiscard]] std::string machine_name();
/// The GPUs that containers may be given: CUDA_VISIBLE_DEVICES where it is set, else those that the driver shows in the
/// folder `devices`, as CUDA numbers them: from 0, whatever numbers their files have.
[[nodiscard]] std::vector<std::string> gpus_here(const std::filesystem::path& devices = "/dev");

}  // namespace trainyard::local
