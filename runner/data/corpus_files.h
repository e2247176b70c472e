#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trainyard::data {

/// Whether what a user should know of a corpus is logged, such as what of its folder is not read: by one rank of a run.
enum class Notes { Logged, Unsaid };

/// The .txt and .jsonl files of a corpus, endings in any case, the latter packed (.jsonl.gz, .jsonl.zst) too: `path`
/// itself, or what lies below it, in the order of their names. Where there is none of these, the .json files likewise.
/// Links are followed, and a file that has several names is there once: under the name of the place where it lies, where
/// that is one of the corpus, else under the first.
/// Hidden names are passed over; what else is not read is counted by its ending in a line of the log.
/// Throws InputError where there is no such file, where it is Arrow (data/arrow.h), for a folder that may not be read,
/// for a link of such an ending that leads to nothing, and for a link that leads to a folder above it.
std::vector<std::filesystem::path> corpus_files(const std::filesystem::path& path, Notes notes = Notes::Logged);

/// The ending of the name in small letters: ".txt" of A.TXT, ".jsonl.gz" of a.jsonl.gz.
std::string ending_of(const std::filesystem::path& path);

/// Whether the file is one of JSON lines under the name .json, packed or not.
bool is_json(const std::filesystem::path& path);

/// Whether each line of the file, which is one of a corpus, is a document; else the whole file is one.
bool has_lines(const std::filesystem::path& path);

}  // namespace trainyard::data
