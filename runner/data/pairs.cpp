#include "data/pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "data/documents.h"
#include "tokenizer/fingerprint.h"

namespace trainyard::data {
namespace {
using nlohmann::json;

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
std::string field_of(const json& line, const std::vector<std::string>& fields, const std::string& where) {
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

void read_file_pairs(const MappedFile& file, const PairOptions& options, std::vector<PairText>& pairs) {
  const std::vector<std::string> sources = names_in(options.source_field), targets = names_in(options.target_field);
  const std::string_view text = file.text();
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1, ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (options.max_samples > 0 && static_cast<int64_t>(pairs.size()) == options.max_samples) return;
    const std::string where = fmt::format("{}:{}", file.path().string(), number);
    const json object = json::parse(line, nullptr, false);
    if (!object.is_object()) throw InputError(where + ": not a JSON object");
    pairs.push_back({field_of(object, sources, where), field_of(object, targets, where)});
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

}  // namespace

std::vector<PairText> read_pairs(const PairOptions& options) {
  std::vector<PairText> pairs;
  for (const auto& path : corpus_files(options.path)) {
    if (path.extension() != ".jsonl")
      throw InputError(fmt::format("{}: pairs of source and target come from .jsonl files", path.string()));
    read_file_pairs(MappedFile(path), options, pairs);
  }
  if (pairs.empty()) throw InputError(fmt::format("{}: no line with a pair", options.path.string()));
  return pairs;
}

PairArray tokenise_pairs(const PairOptions& options, const tokenizer::Tokenizer& tokenizer) {
  if (!tokenizer.eos_id())
    throw InputError("data.tokenizer names no end of text, which a target needs to be seen as complete");
  auto data = std::make_shared<PairArray::Data>();
  tokenizer::Fingerprint fingerprint;
  data->name = options.path.string();
  int64_t number = 0;
  for (const PairText& pair : read_pairs(options)) {
    ++number;
    const auto add = [&](const std::string& text, int64_t limit, const char* what) {
      const auto ids = ids_of(text, tokenizer, limit, options.overlong,
                              fmt::format("{}: pair {}: the {}", data->name, number, what));
      data->ids.insert(data->ids.end(), ids.begin(), ids.end());
      data->ends.push_back(data->ids.size());
      fingerprint.add({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(int32_t)});
    };
    add(options.prefix + pair.source, options.max_source_length, "source");
    add(pair.target, options.max_target_length, "target");
  }
  data->fingerprint = fingerprint.hex();
  PairArray pairs;
  pairs.data_ = std::move(data);
  return pairs;
}

}  // namespace trainyard::data
