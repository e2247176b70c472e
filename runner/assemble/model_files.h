#pragma once

#include <filesystem>
#include <vector>

#include "config/config.h"

namespace trainyard::train {

/// The files that go with the weights of a run into its checkpoints: those beside `weights`, which it begins from ("":
/// none; checkpoint/files_beside.h), with the tokenizer's of data.tokenizer instead of theirs where that is another one.
/// Throws InputError where a folder may not be read.
std::vector<std::filesystem::path> model_files_of(const std::filesystem::path& weights, const config::Data& data);

}  // namespace trainyard::train
