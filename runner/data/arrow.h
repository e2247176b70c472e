#pragma once

#include <filesystem>

namespace trainyard::data {

/// Throws InputError where `path` is a folder or a file in which Hugging Face `datasets` keeps a data set as Arrow: a
/// folder with its dataset_dict.json, dataset_info.json or state.json and an .arrow file below it, or an .arrow file.
/// The error holds the Python that writes JSON lines from it.
void refuse_arrow(const std::filesystem::path& path);

}  // namespace trainyard::data
