#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainyard::data {

/// Whether what a user should know of a corpus is logged, such as what of its folder is not read: by one rank of a run.
enum class Notes { Logged, Unsaid };

/// The .txt and .jsonl files of a corpus, endings in any case, the latter packed (.jsonl.gz, .jsonl.zst) too: `path`
/// itself, or what lies below it, in the order of their names. Where there is none of these, the files of a data set
/// that save_to_disk() wrote (data/saved_dataset.h), else tables (.parquet, .arrow), else .json files likewise. A path
/// that is not there and has one of *, ? and [ is a pattern, of which each match is such a path. Links are followed,
/// and a file that has several names is there once: under the name of the place where it lies, where that is one of the
/// corpus, else under the first. Hidden names are passed over; what else is not read is counted by its ending in a line
/// of the log. Throws InputError where there is no such file, for a folder that may not be read, for tables of several
/// splits, for a link of such an ending that leads to nothing, and for a link that leads to a folder above it.
std::vector<std::filesystem::path> corpus_files(const std::filesystem::path& path, Notes notes = Notes::Logged);

/// The ending of the name in small letters: ".txt" of A.TXT, ".jsonl.gz" of a.jsonl.gz.
std::string ending_of(const std::filesystem::path& path);

/// Whether the file is one of JSON lines under the name .json, packed or not.
bool is_json(const std::filesystem::path& path);

/// What is a document of a file of a corpus.
enum class DocumentIs {
  File,
  Line,  ///< of JSON
  Row,   ///< of a table (data/columns/open_column.h)
};
DocumentIs document_in(const std::filesystem::path& path);

/// Whether `path`, a corpus or a pattern of several, is there.
bool is_there(const std::filesystem::path& path);

/// The folder of a corpus: itself, or the one in which its file, or all that a pattern matches, lies.
std::filesystem::path folder_of(const std::filesystem::path& path);

}  // namespace trainyard::data
