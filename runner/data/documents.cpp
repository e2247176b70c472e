#include "data/documents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "data/corpus_files.h"
#include "tokenizer/text/borders.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;
using nlohmann::ordered_json;

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Where former versions cut a text of more than `limit` bytes.
size_t former_part_length(std::string_view text, size_t limit) {
  const auto is_line = [&](size_t cut) {  // a line may begin with a letter of ASCII, or with what is not ASCII
    const bool is_letter_or_wide = !tokenizer::is_ascii(text[cut]) || is_letter(text[cut]);
    return is_letter_or_wide && tokenizer::begins_line(text, cut);
  };
  const auto is_word = [&](size_t cut) {
    return is_letter(text[cut - 1]) && text[cut] == ' ' && is_letter(text[cut + 1]);
  };
  for (size_t cut = limit - 1; cut > limit / 2; --cut)
    if (is_line(cut) || is_word(cut)) return cut;
  size_t cut = limit;
  while (cut > limit - 4 && tokenizer::is_inside_character(text, cut)) --cut;
  return cut;
}

bool document_was_cut_elsewhere(std::string_view document, const IsBorder& is_border) {
  for (size_t begin = 0; document.size() - begin > kPartBytes;) {
    begin += former_part_length(document.substr(begin), kPartBytes);
    if (!is_border(document, begin)) return true;
  }
  return false;
}

/// `line` with as many bytes of a whole number and spaces in place of each NaN, Infinity and -Infinity, which Python
/// writes and JSON does not have; only where a value stands, and never inside a string.
std::string with_numbers_for_nan(std::string_view line) {
  std::string changed(line);
  char before = 0;  // the last that is no space
  for (size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '"')
      for (++at; at < line.size() && line[at] != '"'; ++at) at += line[at] == '\\' ? 1 : 0;
    else if (before == ':' || before == ',' || before == '[')
      for (const std::string_view word : {"NaN", "Infinity", "-Infinity"})
        if (line.substr(at).starts_with(word)) {
          changed.replace(at, word.size(), word.size(), ' ');
          changed[at] = '0';
          at += word.size() - 1;
          break;
        }
    if (at < line.size() && !is_space(line[at])) before = line[at];
  }
  return changed;
}

std::string take_field(std::string_view line, const std::string& field, const std::string& where) {
  ordered_json object = parse_json_line(line, where);
  if (!object.is_object())
    throw InputError(
        fmt::format("{}: must be a JSON object with the field '{}', is {}", where, field, object.type_name()));
  const auto found = object.find(field);
  if (found == object.end()) {
    std::vector<std::string> names;
    for (const auto& member : object.items()) names.push_back(member.key());
    const auto near = nearest(field, names);
    throw InputError(fmt::format("{}: no field '{}'{}; the line has {}; data.field names the one to take", where, field,
                                 near ? fmt::format(", did you mean '{}'?", *near) : "", fmt::join(names, ", ")));
  }
  if (!found->is_string())
    throw InputError(fmt::format("{}: the field '{}' must be a string, is {}", where, field, found->type_name()));
  return std::move(found->get_ref<std::string&>());
}

constexpr std::string_view kEmptyString = "\"\"";

/// Whether `before`, which precedes a value in its line, ends with the key `field`, or with one that is written with an
/// escape and so may be it.
bool may_be_value_of(const std::string& field, std::string_view before) {
  before = trim(before);
  if (!before.ends_with(':')) return false;
  before = trim(before.substr(0, before.size() - 1));
  if (!before.ends_with('"')) return false;
  before.remove_suffix(1);
  const size_t quote = before.rfind('"');
  if (quote == std::string_view::npos) return false;
  const std::string_view key = before.substr(quote + 1);
  return key == field || key.find('\\') != std::string_view::npos || before.substr(0, quote).ends_with('\\');
}

/// The document of a line. One that is not right is none here: whoever reads it says so.
std::optional<std::string> document_of_line(std::string_view line, const std::string& field) {
  ordered_json object = ordered_json::parse(line, nullptr, false);
  if (object.is_discarded()) object = ordered_json::parse(with_numbers_for_nan(line), nullptr, false);
  if (!object.is_object() || !object.contains(field) || !object[field].is_string()) return std::nullopt;
  return std::move(object[field].get_ref<std::string&>());
}

/// The parts of one document.
void visit_parts(std::string_view document, const std::string& where, const Cutter& cutter, const VisitPart& visit) {
  document.empty() ? visit({})
                   : for_each_part_of(
                         document, [&](size_t) { return where; }, cutter, visit);
}

}  // namespace

ordered_json parse_json_line(std::string_view line, const std::string& where) {
  try {
    ordered_json parsed = ordered_json::parse(line, nullptr, false);
    return parsed.is_discarded() ? ordered_json::parse(with_numbers_for_nan(line)) : parsed;
  } catch (const ordered_json::parse_error& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error …": its line is of this text.
    const std::string_view told = error.what();
    const size_t place = told.find("column "), reason = told.find(": ", std::min(place, told.size()));
    throw InputError(fmt::format("{}: not JSON at byte {} of the line{}", where, error.byte,
                                 reason == std::string_view::npos ? "" : told.substr(reason)));
  } catch (const ordered_json::exception& error) {
    throw InputError(fmt::format("{}: not JSON: {}", where, error.what()));
  }
}

void for_each_line(const fs::path& file, const Stretch& stretch, const VisitLine& visit) {
  const auto visit_right = [&](std::string_view line, const std::string& where) {
    tokenizer::require_utf8(line, where);
    visit(line, where);
  };
  if (stretch.rows)
    return stretch.rows->for_each(
        [&](std::string_view text, int64_t row) { visit_right(text, fmt::format("{}: row {}", file.string(), row)); });
  std::string_view rest = stretch.text;
  if (stretch.first_line == 1 && is_json(file) && trim(rest.substr(0, rest.find('\n'))).starts_with('['))
    throw InputError(
        fmt::format("{}: begins with a list; a .json corpus has a JSON object on each line", file.string()));
  for (size_t number = stretch.first_line; !rest.empty(); ++number) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    if (!trim(line).empty()) visit_right(line, fmt::format("{}:{}", file.string(), number));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
}

void for_each_part(const fs::path& file, const Stretch& stretch, const std::string& field, const Cutter& cutter,
                   const VisitPart& visit) {
  if (document_in(file) != DocumentIs::File)
    return for_each_line(file, stretch, [&](std::string_view line, const std::string& where) {
      if (stretch.rows) return visit_parts(line, where, cutter, visit);
      visit_parts(take_field(line, field, where), where, cutter, visit);
    });
  tokenizer::require_utf8(stretch.text, file.string(), stretch.before.size());
  visit({stretch.before, stretch.text, stretch.is_last});
}

bool has_empty_document(const MappedFile& file, const std::string& field) {
  if (document_in(file.path()) != DocumentIs::Line) return false;
  const std::string_view text = file.text();
  for (size_t at = text.find(kEmptyString); at != std::string_view::npos; at = text.find(kEmptyString, at + 1)) {
    const size_t begin = text.rfind('\n', at) + 1, end = text.find('\n', at);  // npos + 1 is 0
    const bool may_be = may_be_value_of(field, text.substr(begin, at - begin));
    if (may_be && document_of_line(text.substr(begin, end - begin), field) == "") return true;
  }
  return false;
}

void for_each_part(const fs::path& file, const std::string& field, const Cutter& cutter, const VisitPart& visit) {
  for_each_stretch(file, field, cutter,
                   [&](const Stretch& stretch) { for_each_part(file, stretch, field, cutter, visit); });
}

bool was_cut_elsewhere(const MappedFile& file, const std::string& field, const IsBorder& is_border) {
  if (document_in(file.path()) != DocumentIs::Line) return document_was_cut_elsewhere(file.text(), is_border);
  for (std::string_view rest = file.text(); rest.size() > kPartBytes;) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.size() <= kPartBytes) continue;
    const auto document = document_of_line(line, field);
    if (document && document_was_cut_elsewhere(*document, is_border)) return true;
  }
  return false;
}

}  // namespace trainyard::data
