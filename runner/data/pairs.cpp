#include "data/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "data/columns/open_column.h"
#include "data/corpus_files.h"
#include "data/documents.h"
#include "tokenizer/fingerprint.h"
#include "tokenizer/text/utf8.h"

namespace trainyard::data {
namespace {
using nlohmann::ordered_json;

constexpr size_t kLinesAtOnce = 256;

std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const size_t first = list.find_first_not_of(' ', begin);
    const size_t last = list.find_last_not_of(' ', end - 1);
    if (first < end) names.push_back(list.substr(first, last + 1 - first));
    begin = end + 1;
  }
  return names;
}

/// The text of the first of `fields` that the line has.
std::string field_of(const ordered_json& line, const std::vector<std::string>& fields, const std::string& where) {
  std::string wanted;
  for (const std::string& field : fields) {
    if (const auto found = line.find(field); found != line.end()) {
      if (!found->is_string()) throw InputError(fmt::format("{}: {} is no string", where, field));
      return found->get<std::string>();
    }
    wanted += (wanted.empty() ? "'" : "' or '") + field;
  }
  throw InputError(fmt::format("{}: no field {}'", where, wanted));
}

bool has_enough(const std::vector<PairText>& pairs, const PairOptions& options) {
  return options.max_samples > 0 && static_cast<int64_t>(pairs.size()) == options.max_samples;
}

/// Where the lines have a pair: each the first of its names that a line has.
struct PairFields {
  std::vector<std::string> sources, targets;
};

void read_pairs_of(const std::filesystem::path& file, const Stretch& lines, const PairFields& fields,
                   const PairOptions& options, std::vector<PairText>& pairs) {
  size_t number = lines.first_line - 1;
  for (size_t begin = 0; begin < lines.text.size();) {
    const size_t end = std::min(lines.text.find('\n', begin), lines.text.size());
    const std::string_view line = lines.text.substr(begin, end - begin);
    begin = end + 1, ++number;
    if (number % kLinesAtOnce == 0) stop_if_asked(options.how, "reading " + file.string());
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (has_enough(pairs, options)) return;
    const std::string where = fmt::format("{}:{}", file.string(), number);
    const ordered_json object = parse_json_line(line, where);
    if (!object.is_object()) throw InputError(fmt::format("{}: must be a JSON object, is {}", where, object.type_name()));
    pairs.push_back({field_of(object, fields.sources, where), field_of(object, fields.targets, where)});
  }
}

/// The first of these columns that the table has.
std::unique_ptr<TextColumn> first_column(const std::filesystem::path& table, const std::vector<std::string>& names) {
  for (const std::string& name : std::span(names).first(names.size() - 1)) try {
      return open_text_column(table, name);
    } catch (const InputError&) {  // the last one says what the table has
    }
  return open_text_column(table, names.back());
}

/// The texts of a column, at most `limit` of them.
std::vector<std::string> column_of(const std::filesystem::path& table, const std::vector<std::string>& names,
                                   size_t limit, const Tokenising& how) {
  std::vector<std::string> texts;
  const auto column = first_column(table, names);
  while (texts.size() < limit) {
    const auto rows = column->next();
    if (!rows) break;
    stop_if_asked(how, "reading " + table.string());
    rows->for_each([&](std::string_view text, int64_t row) {
      if (texts.size() == limit) return;
      tokenizer::require_utf8(text, fmt::format("{}: row {}", table.string(), row));
      texts.emplace_back(text);
    });
  }
  return texts;
}

void read_table(const std::filesystem::path& table, const PairFields& fields, const PairOptions& options,
                std::vector<PairText>& pairs) {
  const size_t limit =
      options.max_samples > 0 ? static_cast<size_t>(options.max_samples) - pairs.size() : std::string::npos;
  std::vector<std::string> sources = column_of(table, fields.sources, limit, options.how);
  std::vector<std::string> targets = column_of(table, fields.targets, limit, options.how);
  for (size_t row = 0; row < std::min(sources.size(), targets.size()); ++row)
    pairs.push_back({std::move(sources[row]), std::move(targets[row])});
}

void read_lines(const std::filesystem::path& file, const PairFields& fields, const PairOptions& options,
                std::vector<PairText>& pairs) {
  GroupsOfLines groups(file);
  while (!has_enough(pairs, options)) {
    const auto lines = groups.next();
    if (!lines) break;
    read_pairs_of(file, *lines, fields, options, pairs);
  }
}

/// The ids of a text and the end of text, at most `limit` of them.
std::vector<int32_t> ids_of(const std::string& text, const tokenizer::Tokenizer& tokenizer, int64_t limit,
                            Overlong overlong, const std::string& where) {
  std::vector<int32_t> ids = tokenizer.encode(text);
  const auto most = static_cast<size_t>(limit - 1);
  if (ids.size() > most) {
    if (overlong == Overlong::Refuse)
      throw InputError(
          fmt::format("{} has {} tokens with its end of text, over the limit of {}; raise the limit, or "
                      "set data.truncate to true",
                      where, ids.size() + 1, limit));
    ids.resize(most);
  }
  ids.push_back(*tokenizer.eos_id());
  return ids;
}

/// Texts one after another, as in PairArray; the ends are counted from the first of them.
struct Encoded {
  std::vector<int32_t> ids;
  std::vector<size_t> ends;
};

/// `first`: the number of the first pair, from 1.
Encoded encode(std::span<const PairText> pairs, int64_t first, const PairOptions& options,
               const tokenizer::Tokenizer& tokenizer, const Workers& workers) {
  Encoded encoded;
  const auto add = [&](const std::string& text, int64_t limit, const char* what) {
    if (workers.are_ending()) throw TerminatedError("nobody waits for this any more");
    const auto ids = ids_of(text, tokenizer, limit, options.overlong,
                            fmt::format("{}: pair {}: the {}", options.path.string(), first, what));
    encoded.ids.insert(encoded.ids.end(), ids.begin(), ids.end());
    encoded.ends.push_back(encoded.ids.size());
  };
  for (const PairText& pair : pairs) {
    add(options.prefix + pair.source, options.max_source_length, "source");
    add(pair.target, options.max_target_length, "target");
    ++first;
  }
  return encoded;
}

}  // namespace

std::vector<PairText> read_pairs(const PairOptions& options) {
  std::vector<PairText> pairs;
  const PairFields fields{names_in(options.source_field), names_in(options.target_field)};
  for (const auto& path : corpus_files(options.path, options.how.notes)) {
    if (has_enough(pairs, options)) break;
    switch (document_in(path)) {
      case DocumentIs::Line:
        read_lines(path, fields, options, pairs);
        break;
      case DocumentIs::Row:
        read_table(path, fields, options, pairs);
        break;
      case DocumentIs::File:
        throw InputError(
            fmt::format("{}: pairs of source and target come from .jsonl files and tables", path.string()));
    }
  }
  if (pairs.empty()) throw InputError(fmt::format("{}: no line or row with a pair", options.path.string()));
  return pairs;
}

PairArray PairArray::part(int64_t begin, int64_t end) const {
  PairArray part = *this;
  part.begin_ = begin_ + begin, part.size_ = end - begin;
  part.fingerprint_ = part_fingerprint(fingerprint_, begin, end);
  return part;
}

PairArray tokenise_pairs(const PairOptions& options, const tokenizer::Tokenizer& tokenizer) {
  if (!tokenizer.eos_id())
    throw InputError("data.tokenizer names no end of text, which a target needs to be seen as complete");
  auto data = std::make_shared<PairArray::Data>();
  tokenizer::Fingerprint fingerprint;
  data->name = options.path.string();
  const std::vector<PairText> texts = read_pairs(options);
  InOrder<Encoded> groups(options.how, "tokenising " + data->name, [&](const Encoded& group) {
    for (size_t text = 0; text < group.ends.size(); ++text) {
      const size_t begin = text == 0 ? 0 : group.ends[text - 1];
      const auto ids = std::span(group.ids).subspan(begin, group.ends[text] - begin);
      data->ids.insert(data->ids.end(), ids.begin(), ids.end());
      data->ends.push_back(data->ids.size());
      fingerprint.add({reinterpret_cast<const char*>(ids.data()), ids.size_bytes()});
    }
  });
  for (size_t begin = 0; begin < texts.size(); begin += kLinesAtOnce) {
    const auto some = std::span(texts).subspan(begin, std::min<size_t>(kLinesAtOnce, texts.size() - begin));
    groups.add([&, some, begin](const Workers& workers) {
      return encode(some, static_cast<int64_t>(begin) + 1, options, tokenizer, workers);
    });
  }
  groups.finish();
  PairArray pairs;
  pairs.data_ = std::move(data);
  pairs.size_ = static_cast<int64_t>(texts.size());
  pairs.fingerprint_ = fingerprint.hex();
  return pairs;
}

}  // namespace trainyard::data
