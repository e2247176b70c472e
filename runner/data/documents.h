#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/files.h"
#include "data/corpus_files.h"

namespace trainyard::data {

/// Text is handed on in parts of at most this size, so that any file takes bounded memory. A part ends where a
/// line or a word of letters does: Tokenizer::encode_after() then gives the ids of the whole. What has no such place,
/// as a text without a space, is cut between two characters.
inline constexpr size_t kPartBytes = size_t{1} << 20;

/// Length of the part at the front of `text`.
size_t part_length(std::string_view text, size_t limit = kPartBytes);

/// A part of a document. The views are as long as the visit.
struct TextPart {
  std::string_view before = {};  ///< of the same document
  std::string_view text = {};
  bool is_last = true;  ///< of its document
};
using VisitPart = std::function<void(const TextPart& part)>;

/// What of a file can be read apart from the rest: a part of a .txt file, or whole lines of a .jsonl file, about
/// kPartBytes of them. It depends on the file's content alone.
struct Stretch {
  std::string_view before = {}, text = {};
  size_t first_line = 1;  ///< of a .jsonl file
};

/// Hands on the stretches of a file, in order.
void for_each_stretch(const MappedFile& file, const std::function<void(const Stretch& stretch)>& visit);

/// Hands the documents of a stretch to `visit`, part by part: a .txt file is one document, unless it is empty, a .jsonl
/// file has one a line, in the string member `field`, which may be empty; empty lines are passed over. Threads may read stretches of one file at once.
/// Throws InputError: no UTF-8 (file and byte offset), a line that is no JSON object or lacks the field (file and
/// line).
void for_each_part(const MappedFile& file, const Stretch& stretch, const std::string& field, const VisitPart& visit);

/// It visits the documents of all stretches.
void for_each_part(const MappedFile& file, const std::string& field, const VisitPart& visit);

/// Whether a line of the file has an empty `field`: one document without a token of its own.
bool has_empty_document(const MappedFile& file, const std::string& field);

/// The JSON of one line of a file, with a number for NaN and the infinities, which Python writes. Throws InputError,
/// which begins with `where`, saying at which byte it is none.
nlohmann::json parse_json_line(std::string_view line, const std::string& where);

}  // namespace trainyard::data
