#include "data/documents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "tokenizer/utf8.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

bool is_corpus_file(const fs::path& path) {
  return path.extension() == ".txt" || path.extension() == ".jsonl";
}
bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Whether every split pattern in use ends a piece at `cut`: "x|\ny" would not do, the line's end may belong to x;
/// "x\n|y" and "x| y" do, and neither side's piece depends on the other side.
bool is_between_pieces(std::string_view text, size_t cut) {
  const bool is_line = text[cut - 1] == '\n' && !is_space(text[cut - 2]) && is_letter(text[cut]);
  const bool is_word = is_letter(text[cut - 1]) && text[cut] == ' ' && is_letter(text[cut + 1]);
  return is_line || is_word;
}

void visit_document(std::string_view text, const VisitPart& visit) {
  while (!text.empty()) {
    const size_t length = part_length(text);
    visit(text.substr(0, length), length == text.size() ? DocumentEnd::Yes : DocumentEnd::No);
    text.remove_prefix(length);
  }
}

json parse_line(std::string_view line, const std::string& where) {
  try {
    return json::parse(line);
  } catch (const json::exception& error) {
    throw InputError(fmt::format("{}: {}", where, error.what()));
  }
}

std::string take_field(std::string_view line, const std::string& field, const std::string& where) {
  json object = parse_line(line, where);
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

void visit_lines(const MappedFile& file, const std::string& field, const VisitPart& visit) {
  std::string_view rest = file.text();
  for (size_t number = 1; !rest.empty(); ++number) {
    const size_t end = rest.find('\n');
    const std::string_view line = trim(rest.substr(0, end));
    if (!line.empty()) {
      const std::string where = fmt::format("{}:{}", file.path().string(), number);
      tokenizer::require_utf8(line, where);
      visit_document(take_field(line, field, where), visit);
    }
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
}

/// Checked part by part: the pages that are read are those that are tokenised next.
void visit_text(const MappedFile& file, const VisitPart& visit) {
  size_t offset = 0;
  visit_document(file.text(), [&](std::string_view part, DocumentEnd end) {
    tokenizer::require_utf8(part, file.path().string(), offset);
    offset += part.size();
    visit(part, end);
  });
}

}  // namespace

std::vector<fs::path> corpus_files(const fs::path& path) {
  if (!fs::exists(path)) throw InputError(fmt::format("{}: no such file or folder", path.string()));
  if (!fs::is_directory(path)) {
    if (!is_corpus_file(path))
      throw InputError(fmt::format("{}: a corpus is a .txt file, a .jsonl file, or a folder of them", path.string()));
    return {path};
  }
  std::vector<fs::path> files;
  for (auto entry = fs::recursive_directory_iterator(path); entry != fs::recursive_directory_iterator(); ++entry) {
    if (is_hidden(entry->path()))
      entry.disable_recursion_pending();
    else if (entry->is_regular_file() && is_corpus_file(entry->path()))
      files.push_back(entry->path());
  }
  if (files.empty()) throw InputError(fmt::format("{}: no .txt and no .jsonl file below this folder", path.string()));
  std::ranges::sort(files);
  return files;
}

size_t part_length(std::string_view text, size_t limit) {
  if (text.size() <= limit) return text.size();
  for (size_t cut = limit - 1; cut > limit / 2; --cut)
    if (is_between_pieces(text, cut)) return cut;
  size_t cut = limit;  // no such place: between two characters
  while (cut > limit - 4 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
  return cut;
}

void for_each_part(const MappedFile& file, const std::string& field, const VisitPart& visit) {
  if (file.path().extension() == ".jsonl")
    visit_lines(file, field, visit);
  else
    visit_text(file, visit);
}

}  // namespace trainyard::data
