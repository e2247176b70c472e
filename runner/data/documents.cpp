#include "data/documents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "tokenizer/utf8.h"

namespace trainyard::data {
namespace {
using nlohmann::json;

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Unicode's White_Space beyond ASCII.
bool is_wide_space(char32_t c) {
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

/// Whether a line may begin with the character at `at`: a letter of ASCII, or what is neither ASCII nor a space. Split
/// patterns may let a line's end take more signs in ("[\r\n/]*").
bool begins_line(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return is_letter(text[at]);
  return lead >= 0xC0 && at + tokenizer::utf8_length(lead) <= text.size() &&
         !is_wide_space(tokenizer::decode_utf8(text, at));
}

/// Whether the character before `at` is no space.
bool ends_line(std::string_view text, size_t at) {
  size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  const auto lead = static_cast<unsigned char>(text[begin]);
  if (begin + tokenizer::utf8_length(lead) != at) return false;
  return lead < 0x80 ? !is_space(text[begin]) : !is_wide_space(tokenizer::decode_utf8(text, begin));
}

/// Whether every split pattern in use ends a piece at `cut`: "x|\ny" would not do, the line's end may belong to x;
/// "x\n|y" and "x| y" do, and neither side's piece depends on the other side.
bool is_between_pieces(std::string_view text, size_t cut) {
  const bool is_line = text[cut - 1] == '\n' && ends_line(text, cut - 1) && begins_line(text, cut);
  const bool is_word = is_letter(text[cut - 1]) && text[cut] == ' ' && is_letter(text[cut + 1]);
  return is_line || is_word;
}

void visit_document(std::string_view text, const VisitPart& visit) {
  for (size_t begin = 0, length = 0; begin < text.size(); begin += length) {
    length = part_length(text.substr(begin));
    visit({text.substr(0, begin), text.substr(begin, length), begin + length == text.size()});
  }
}

/// Whole lines, of kPartBytes or more, unless they are the last.
void visit_groups_of_lines(std::string_view text, const std::function<void(const Stretch&)>& visit) {
  size_t line = 1;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    const bool is_last = text.size() - begin <= kPartBytes;
    end = is_last ? text.size() : std::min(text.find('\n', begin + kPartBytes), text.size() - 1) + 1;
    const std::string_view lines = text.substr(begin, end - begin);
    visit({.text = lines, .first_line = line});
    line += static_cast<size_t>(std::ranges::count(lines, '\n'));
  }
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
  json object = parse_json_line(line, where);
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

/// A line that is not right is none here: whoever reads its document says so.
bool is_empty_in(std::string_view line, const std::string& field) {
  json object = json::parse(line, nullptr, false);
  if (object.is_discarded()) object = json::parse(with_numbers_for_nan(line), nullptr, false);
  return object.is_object() && object.contains(field) && object[field] == "";
}

void visit_lines(const MappedFile& file, const Stretch& stretch, const std::string& field, const VisitPart& visit) {
  std::string_view rest = stretch.text;
  const bool is_first = stretch.first_line == 1;
  if (is_first && ending_of(file.path()) == ".json" && trim(rest.substr(0, rest.find('\n'))).starts_with('['))
    throw InputError(fmt::format("{}: begins with a list; a .json corpus has a JSON object on each line",
                                 file.path().string()));
  for (size_t number = stretch.first_line; !rest.empty(); ++number) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    if (!trim(line).empty()) {
      const std::string where = fmt::format("{}:{}", file.path().string(), number);
      tokenizer::require_utf8(line, where);
      const std::string document = take_field(line, field, where);
      document.empty() ? visit({}) : visit_document(document, visit);
    }
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
}

}  // namespace

json parse_json_line(std::string_view line, const std::string& where) {
  try {
    json parsed = json::parse(line, nullptr, false);
    return parsed.is_discarded() ? json::parse(with_numbers_for_nan(line)) : parsed;
  } catch (const json::parse_error& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error …": its line is of this text.
    const std::string_view told = error.what();
    const size_t place = told.find("column "), reason = told.find(": ", std::min(place, told.size()));
    throw InputError(fmt::format("{}: not JSON at byte {} of the line{}", where, error.byte,
                                 reason == std::string_view::npos ? "" : told.substr(reason)));
  } catch (const json::exception& error) {
    throw InputError(fmt::format("{}: not JSON: {}", where, error.what()));
  }
}

size_t part_length(std::string_view text, size_t limit) {
  if (text.size() <= limit) return text.size();
  for (size_t cut = limit - 1; cut > limit / 2; --cut)
    if (is_between_pieces(text, cut)) return cut;
  size_t cut = limit;  // no such place: between two characters
  while (cut > limit - 4 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
  return cut;
}

void for_each_stretch(const MappedFile& file, const std::function<void(const Stretch&)>& visit) {
  if (has_lines(file.path())) return visit_groups_of_lines(file.text(), visit);
  visit_document(file.text(), [&](const TextPart& part) { visit({.before = part.before, .text = part.text}); });
}

void for_each_part(const MappedFile& file, const Stretch& stretch, const std::string& field, const VisitPart& visit) {
  if (has_lines(file.path())) return visit_lines(file, stretch, field, visit);
  tokenizer::require_utf8(stretch.text, file.path().string(), stretch.before.size());
  visit({stretch.before, stretch.text, stretch.before.size() + stretch.text.size() == file.text().size()});
}

bool has_empty_document(const MappedFile& file, const std::string& field) {
  if (!has_lines(file.path())) return false;
  const std::string_view text = file.text();
  for (size_t at = text.find(kEmptyString); at != std::string_view::npos; at = text.find(kEmptyString, at + 1)) {
    const size_t begin = text.rfind('\n', at) + 1, end = text.find('\n', at);  // npos + 1 is 0
    if (may_be_value_of(field, text.substr(begin, at - begin)) && is_empty_in(text.substr(begin, end - begin), field))
      return true;
  }
  return false;
}

void for_each_part(const MappedFile& file, const std::string& field, const VisitPart& visit) {
  for_each_stretch(file, [&](const Stretch& stretch) { for_each_part(file, stretch, field, visit); });
}

}  // namespace trainyard::data
