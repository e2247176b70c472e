#pragma once

#include <filesystem>
#include <optional>
#include <vector>

namespace trainyard::data {

/// The Arrow files of a folder that Hugging Face `datasets` wrote by save_to_disk(), in the order of its rows; none
/// where the folder is no such. A DatasetDict of one split is that split. Throws InputError for one of several splits,
/// naming them; for an order of rows beside them, as versions before 2.0 left; and for a description that is damaged or
/// names a file that is not there.
std::optional<std::vector<std::filesystem::path>> saved_dataset_files(const std::filesystem::path& folder);

/// Throws InputError where the names of the files below `folder` are those of several splits, as in train-00000.parquet
/// and test-00000.parquet: a corpus is one of them.
void require_one_split(const std::vector<std::filesystem::path>& files, const std::filesystem::path& folder);

}  // namespace trainyard::data
