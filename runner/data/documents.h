#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace trainyard::data {

/// The .txt and .jsonl files of a corpus: `path` itself, or what lies below it, in the order of their names; hidden
/// files and folders are passed over. Throws InputError where there is none.
std::vector<std::filesystem::path> corpus_files(const std::filesystem::path& path);

/// Text is handed on in parts of at most this size, so that any file takes bounded memory. A part ends where a
/// line or a word of letters does: byte-level BPE then gives the ids of the whole. (SentencePiece may begin a part with
/// one U+2581 more.)
inline constexpr size_t kPartBytes = size_t{8} << 20;

/// Length of the part at the front of `text`.
size_t part_length(std::string_view text, size_t limit = kPartBytes);

enum class DocumentEnd { No, Yes };
using VisitPart = std::function<void(std::string_view part, DocumentEnd end)>;

/// Hands the documents of one file to `visit`, part by part: a .txt file is one, a .jsonl file has one a line, in the
/// string member `field`; empty lines are passed over.
/// Throws InputError: no UTF-8 (file and byte offset), a line that is no JSON object or lacks the field (file and
/// line).
void for_each_part(const MappedFile& file, const std::string& field, const VisitPart& visit);

}  // namespace trainyard::data
