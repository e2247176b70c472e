#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"
#include "data/corpus_files.h"

namespace trainyard::data {

/// Whether a document may be cut at `at`, where one of its characters begins, as Tokenizer::is_border() says.
using IsBorder = std::function<bool(std::string_view document, size_t at)>;

/// Where documents may be cut, and whose rules say so: what messages call that ("the tokenizer models/llama3").
struct Cutter {
  IsBorder is_border;
  std::string name;
};

/// Text is handed on in parts, so that any file takes bounded memory: of a first size, of which a document has a border in
/// most texts, else as long as it takes up to the next, at most the second size.
struct PartSizes {
  size_t usual = size_t{1} << 20, largest = size_t{64} << 20;
};
inline constexpr size_t kPartBytes = PartSizes{}.usual;

/// Length of the part of `document` that begins at `begin`; none where there is no border within the largest size.
std::optional<size_t> part_length(std::string_view document, size_t begin, const IsBorder& is_border,
                                  const PartSizes& sizes = {});

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

/// Hands on the stretches of a file, in order. Throws InputError, naming file and line and the cutter, for a document that
/// cannot be cut.
void for_each_stretch(const MappedFile& file, const Cutter& cutter,
                      const std::function<void(const Stretch& stretch)>& visit);

/// Hands the documents of a stretch to `visit`, part by part: a .txt file is one document, unless it is empty, a .jsonl
/// file has one a line, in the string member `field`, which may be empty; empty lines are passed over. Threads
/// may read stretches of one file at once. Throws InputError: no UTF-8 (file and byte offset), a line that is no JSON
/// object or lacks the field, or a document that cannot be cut (file and line, and the cutter).
void for_each_part(const MappedFile& file, const Stretch& stretch, const std::string& field, const Cutter& cutter,
                   const VisitPart& visit);

/// It visits the documents of all stretches.
void for_each_part(const MappedFile& file, const std::string& field, const Cutter& cutter, const VisitPart& visit);

/// Whether former versions cut a document of the file at another place than a border: it then had other ids than the
/// whole. They cut at ends of words of ASCII's letters and of lines, and between any two characters where they saw none.
bool was_cut_elsewhere(const MappedFile& file, const std::string& field, const IsBorder& is_border);

/// Whether a line of the file has an empty `field`: one document without a token of its own.
bool has_empty_document(const MappedFile& file, const std::string& field);

/// The JSON of one line of a file, with a number for NaN and the infinities, which Python writes. Throws InputError,
/// which begins with `where`, saying at which byte it is none.
nlohmann::json parse_json_line(std::string_view line, const std::string& where);

}  // namespace trainyard::data
