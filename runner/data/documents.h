#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/files.h"
#include "data/stretches.h"

namespace trainyard::data {

/// Hands on a line or a row, and what messages call it: "a.jsonl:3" or "a.parquet: row 3".
using VisitLine = std::function<void(std::string_view line, const std::string& where)>;

/// Hands the lines of a stretch that are not empty, or the rows of a table's, to `visit`. Throws InputError for what is
/// no UTF-8, for a .json file that begins with a list, and what TextRows throws.
void for_each_line(const std::filesystem::path& file, const Stretch& stretch, const VisitLine& visit);

/// Hands the documents of a stretch to `visit`, part by part: a .txt file is one document, unless it is empty, a table
/// has one a row, any other one a line, in the string member `field`. Of the two, a document may be empty; empty lines
/// are passed over. Threads may read stretches of one file at once. Throws InputError: no UTF-8 (file and byte offset,
/// or row), a line that is no JSON object or lacks the field, what TextRows throws, or a document that cannot be cut
/// (file and line or row, and the cutter).
void for_each_part(const std::filesystem::path& file, const Stretch& stretch, const std::string& field, const Cutter& cutter,
                   const VisitPart& visit);

/// It visits the documents of all stretches.
void for_each_part(const std::filesystem::path& file, const std::string& field, const Cutter& cutter,
                   const VisitPart& visit);

/// Whether former versions cut a document of the file, which is no table, at another place than a border: it then had
/// other ids than the whole. They cut at ends of words of ASCII's letters and of lines, and between any two characters
/// where they saw none.
bool was_cut_elsewhere(const MappedFile& file, const std::string& field, const IsBorder& is_border);

/// Whether a line of the file has an empty `field`: one document without a token of its own.
bool has_empty_document(const MappedFile& file, const std::string& field);

/// The JSON of one line of a file, with a number for NaN and the infinities, which Python writes. Throws InputError,
/// which begins with `where`, saying at which byte it is none.
nlohmann::ordered_json parse_json_line(std::string_view line, const std::string& where);

}  // namespace trainyard::data
