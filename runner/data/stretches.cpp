#include "data/stretches.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/columns/open_column.h"
#include "data/corpus_files.h"
#include "data/unpacking.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::data {
namespace fs = std::filesystem;

std::optional<size_t> part_length(std::string_view document, size_t begin, const IsBorder& is_border,
                                  const PartSizes& sizes) {
  const size_t rest = document.size() - begin;
  if (rest <= sizes.usual) return rest;
  const auto is_end = [&](size_t length) {
    return !tokenizer::is_inside_character(document, begin + length) && is_border(document, begin + length);
  };
  for (size_t length = sizes.usual; length > 0; --length)
    if (is_end(length)) return length;
  for (size_t length = sizes.usual + 1; length < std::min(rest, sizes.largest + 1); ++length)
    if (is_end(length)) return length;
  return rest <= sizes.largest ? std::optional(rest) : std::nullopt;
}

void for_each_part_of(std::string_view text, const std::function<std::string(size_t at)>& place_of, const Cutter& cutter,
                      const VisitPart& visit) {
  for (size_t begin = 0; begin < text.size();) {
    const auto length = part_length(text, begin, cutter.is_border);
    if (!length)
      throw InputError(fmt::format(
          "{}: from here on this document has no place within {} where {} gives the parts of a text the ids of the "
          "whole; make shorter documents of it, one a line of a .jsonl file",
          place_of(begin), human_bytes(PartSizes{}.largest), cutter.name));
    visit({text.substr(0, begin), text.substr(begin, *length), begin + *length == text.size()});
    begin += *length;
  }
}

/// Gives whole lines, of kPartBytes or more, unless they are the last. None at the end.
class GroupsOfLines::Source {
 public:
  Source() = default;
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual std::optional<Stretch> next() = 0;
};

namespace {

class MappedLines final : public GroupsOfLines::Source {
 public:
  explicit MappedLines(const fs::path& file)
      : file_(std::make_shared<const MappedFile>(file)), rest_(file_->text()) {}

  std::optional<Stretch> next() override {
    if (rest_.empty()) return std::nullopt;
    const bool is_last = rest_.size() <= kPartBytes;
    const size_t end = is_last ? rest_.size() : std::min(rest_.find('\n', kPartBytes), rest_.size() - 1) + 1;
    const std::string_view lines = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return Stretch{.text = lines, .memory = file_};
  }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::string_view rest_;
};

class PackedLines final : public GroupsOfLines::Source {
 public:
  explicit PackedLines(const fs::path& file) : path_(file), unpacking_(file) {}

  std::optional<Stretch> next() override {
    auto lines = std::make_shared<std::string>(std::exchange(rest_, {}));
    size_t end = std::string::npos;
    for (size_t searched = kPartBytes; end == std::string::npos && read_on(*lines);) {
      end = lines->find('\n', searched);
      searched = std::max(searched, lines->size());
      if (end == std::string::npos && lines->size() > kLargestLine)
        throw InputError(fmt::format("{}: has a line of more than {}; a document is a line", path_.string(),
                                     human_bytes(kLargestLine)));
    }
    if (lines->empty()) return std::nullopt;
    if (end != std::string::npos) {
      rest_ = lines->substr(end + 1);
      lines->resize(end + 1);
    }
    return Stretch{.text = *lines, .memory = lines};
  }

 private:
  static constexpr size_t kPiece = size_t{1} << 18, kLargestLine = size_t{1} << 30;

  /// Adds a piece of the content; false at its end.
  bool read_on(std::string& lines) {
    const size_t had = lines.size();
    lines.resize(had + kPiece);
    lines.resize(had + unpacking_.read({lines.data() + had, kPiece}));
    return lines.size() > had;
  }

  fs::path path_;
  Unpacking unpacking_;
  std::string rest_;
};

}  // namespace

GroupsOfLines::GroupsOfLines(const fs::path& file) {
  if (is_packed(file))
    source_ = std::make_unique<PackedLines>(file);
  else
    source_ = std::make_unique<MappedLines>(file);
}

GroupsOfLines::~GroupsOfLines() = default;

std::optional<Stretch> GroupsOfLines::next() {
  auto stretch = source_->next();
  if (!stretch) return std::nullopt;
  stretch->first_line = line_;
  line_ += static_cast<size_t>(std::ranges::count(stretch->text, '\n'));
  return stretch;
}

namespace {

void for_each_stretch_of_text(const fs::path& path, const Cutter& cutter,
                              const std::function<void(const Stretch&)>& visit) {
  const auto file = std::make_shared<const MappedFile>(path);
  const auto line_of = [&](size_t at) {
    return fmt::format("{}:{}", path.string(), 1 + std::ranges::count(file->text().substr(0, at), '\n'));
  };
  for_each_part_of(file->text(), line_of, cutter, [&](const TextPart& part) {
    visit({.before = part.before, .text = part.text, .is_last = part.is_last, .memory = file});
  });
}

void for_each_group_of_lines(const fs::path& file, const std::function<void(const Stretch&)>& visit) {
  GroupsOfLines groups(file);
  while (const auto lines = groups.next()) visit(*lines);
}

void for_each_group_of_rows(TextColumn& column, const std::function<void(const Stretch&)>& visit) {
  while (auto rows = column.next()) visit({.rows = std::move(rows)});
}

}  // namespace

void for_each_stretch(const fs::path& file, const std::string& field, const Cutter& cutter,
                      const std::function<void(const Stretch&)>& visit) {
  switch (document_in(file)) {
    case DocumentIs::File:
      return for_each_stretch_of_text(file, cutter, visit);
    case DocumentIs::Line:
      return for_each_group_of_lines(file, visit);
    case DocumentIs::Row:
      return for_each_group_of_rows(*open_text_column(file, field), visit);
  }
}

void for_each_record_stretch(const fs::path& file, const RecordColumns& columns,
                             const std::function<void(const Stretch&)>& visit) {
  if (!is_table(file)) return for_each_group_of_lines(file, visit);
  for_each_group_of_rows(*open_record_columns(file, columns), visit);
}

}  // namespace trainyard::data
