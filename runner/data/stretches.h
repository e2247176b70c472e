#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "data/columns/record_columns.h"
#include "data/columns/text_column.h"

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

/// Hands the parts of a document to `visit`. Throws InputError, which begins with `place_of` a byte, where it has no
/// border within the largest size.
void for_each_part_of(std::string_view document, const std::function<std::string(size_t at)>& place_of,
                      const Cutter& cutter, const VisitPart& visit);

/// What of a file can be read apart from the rest: a part of a .txt file, whole lines of a file of them, or rows of a
/// table, about kPartBytes of them. It depends on the file's content alone.
struct Stretch {
  std::string_view before = {}, text = {};
  bool is_last = true;                             ///< of a .txt file
  size_t first_line = 1;                           ///< of a file of lines
  std::shared_ptr<const TextRows> rows = nullptr;  ///< of a table, which has no `text`
  std::shared_ptr<const void> memory = {};         ///< in which the views lie

  [[nodiscard]] size_t bytes() const { return rows ? rows->bytes() : text.size(); }
};

/// The stretches of a file of lines, in order. One thread.
class GroupsOfLines {
 public:
  /// Throws InputError where the file cannot be read.
  explicit GroupsOfLines(const std::filesystem::path& file);
  ~GroupsOfLines();

  /// None at the end. Throws InputError for a packed file (data/unpacking.h) that is damaged, or that has a line of more
  /// than 1 GiB.
  std::optional<Stretch> next();

  class Source;

 private:
  std::unique_ptr<Source> source_;
  size_t line_ = 1;
};

/// Hands on the stretches of a file, in order; of a table, those of the column `field`. Throws InputError, naming file
/// and line and the cutter, for a document that cannot be cut, and what GroupsOfLines and open_text_column() throw.
void for_each_stretch(const std::filesystem::path& file, const std::string& field, const Cutter& cutter,
                      const std::function<void(const Stretch& stretch)>& visit);

/// Those of a file of lines, or of a table: of the latter a row's text is a JSON object of these columns. Throws as
/// for_each_stretch() and open_record_columns().
void for_each_record_stretch(const std::filesystem::path& file, const RecordColumns& columns,
                             const std::function<void(const Stretch& stretch)>& visit);

}  // namespace trainyard::data
