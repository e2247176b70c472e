#include "local/manifest/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <regex>
#include <set>

#include "local/manifest/refusal.h"

namespace trainyard::local {
namespace {

constexpr size_t kMaxNodes = 500'000;  // a few short aliases of aliases could stand for billions
constexpr int kMaxDepth = 100;

std::string normal_path(std::string_view path) {
  std::string normal;
  for (const char c : path) {
    const bool separates = c == '.' || c == '[' || c == ']' || c == '/';
    if (!separates) normal += c;
    if (separates && !normal.empty() && normal.back() != '/') normal += '/';
  }
  if (!normal.empty() && normal.back() == '/') normal.pop_back();
  return "/" + normal;
}

std::optional<int64_t> integer_of(std::string text) {
  std::erase(text, '_');
  bool is_negative = false;
  if (text.starts_with('-') || text.starts_with('+')) is_negative = text[0] == '-', text.erase(0, 1);
  int base = 10;
  if (text.starts_with("0x"))
    base = 16, text.erase(0, 2);
  else if (text.starts_with("0b"))
    base = 2, text.erase(0, 2);
  else if (text.starts_with("0o"))
    base = 8, text.erase(0, 2);
  else if (text.size() > 1 && text[0] == '0')
    base = 8;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || text[0] == '-' || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return is_negative ? -value : value;
}

std::optional<double> float_of(const std::string& text) {
  static const std::regex form(R"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)");
  if (text.size() > 64 || !std::regex_match(text, form)) return std::nullopt;
  double value = 0;
  const char* const begin = text.data() + (text[0] == '+' ? 1 : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A whole number as Go writes it into JSON, where kubectl's floats end: 2.95e+04 is 29500.
Json number_of(double value) {
  constexpr double kBeyond = 9223372036854775808.0;  // 2^63
  const bool is_whole = std::trunc(value) == value && std::abs(value) < kBeyond;
  return is_whole ? Json(static_cast<int64_t>(value)) : Json(value);
}

/// Turns yaml-cpp's nodes of one document into JSON, and notes where each field stands.
class Reader {
 public:
  explicit Reader(Document& document) : document_(document) {}

  Json value(const YAML::Node& node, const std::string& path, int line, int depth) {
    if (++nodes_ > kMaxNodes || depth > kMaxDepth)
      refuse(line, fmt::format("more than {} values or {} levels with its aliases resolved", kMaxNodes, kMaxDepth));
    document_.lines.emplace(path, line);
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        return scalar(node);
      case YAML::NodeType::Sequence:
        return sequence(node, path, depth);
      case YAML::NodeType::Map:
        return map(node, path, depth);
      default:
        return nullptr;
    }
  }

 private:
  [[noreturn]] void refuse(int line, const std::string& problem) const {
    throw Refusal(fmt::format("{}:{}: {}", document_.file, line, problem));
  }

  static Json scalar(const YAML::Node& node) {
    const bool is_plain = node.Tag() == "?" || node.Tag().empty();
    return is_plain ? plain_value(node.Scalar()) : Json(node.Scalar());
  }

  Json sequence(const YAML::Node& node, const std::string& path, int depth) {
    Json list = Json::array();
    for (const YAML::Node& item : node)
      list.push_back(value(item, fmt::format("{}/{}", path, list.size()), item.Mark().line + 1, depth + 1));
    return list;
  }

  Json map(const YAML::Node& node, const std::string& path, int depth) {
    Json object = Json::object();
    std::vector<YAML::Node> merged;
    for (const auto& entry : node) {
      const YAML::Node &key = entry.first, &content = entry.second;
      const int line = key.Mark().line + 1;
      if (!key.IsScalar()) refuse(line, "a key must be a text");
      const std::string& name = key.Scalar();
      if (name == "<<" && key.Tag() != "!") {
        collect_merged(content, line, merged);
        continue;
      }
      if (object.contains(name)) refuse(line, fmt::format("'{}' is given twice in one object", name));
      object[name] = value(content, path + normal_path(name), line, depth + 1);
    }
    for (const YAML::Node& source : merged) merge(source, path, depth, object);
    return object;
  }

  void collect_merged(const YAML::Node& content, int line, std::vector<YAML::Node>& merged) const {
    if (content.IsMap()) merged.push_back(content);
    if (content.IsSequence())
      for (const YAML::Node& each : content) merged.push_back(each);
    const bool are_maps = std::ranges::all_of(merged, [](const YAML::Node& each) { return each.IsMap(); });
    if ((!content.IsMap() && !content.IsSequence()) || !are_maps)
      refuse(line, "'<<' takes an object or a list of them");
  }

  /// What stands in the object itself wins, then what is merged first.
  void merge(const YAML::Node& source, const std::string& path, int depth, Json& object) {
    const Json added = map(source, path, depth + 1);
    for (const auto& [name, content] : added.items())
      if (!object.contains(name)) object[name] = content;
  }

  Document& document_;
  size_t nodes_ = 0;
};

void add_items(Document&& document, std::vector<Document>& all) {
  const Json* const items = find(document.content, "/items");
  // A client for Python writes PyTorchJobList, kubectl List.
  if (!text_at(document.content, "/kind").ends_with("List") || !items || !items->is_array()) {
    all.push_back(std::move(document));
    return;
  }
  for (size_t i = 0; i < items->size(); ++i) {
    Document item{.file = document.file, .content = (*items)[i], .lines = {}, .first_line = document.first_line};
    const std::string prefix = fmt::format("/items/{}", i);
    for (auto line = document.lines.lower_bound(prefix); line != document.lines.end(); ++line) {
      if (!line->first.starts_with(prefix)) break;
      if (line->first == prefix || line->first[prefix.size()] == '/')
        item.lines.emplace(line->first.substr(prefix.size()), line->second);
    }
    item.first_line = item.lines[""];
    all.push_back(std::move(item));
  }
}

}  // namespace

std::string Document::place_of(std::string_view path) const {
  std::string at = normal_path(path);
  while (!at.empty()) {
    if (const auto found = lines.find(at); found != lines.end()) return fmt::format("{}:{}", file, found->second);
    at.erase(at.rfind('/'));
  }
  return fmt::format("{}:{}", file, first_line);
}

std::vector<Document> read_yaml(const std::string& text, const std::string& file) {
  std::vector<Document> all;
  try {
    for (const YAML::Node& node : YAML::LoadAll(text)) {
      if (!node.IsDefined() || node.IsNull()) continue;
      Document document{.file = file, .content = {}, .lines = {}, .first_line = node.Mark().line + 1};
      document.content = Reader(document).value(node, "", node.Mark().line + 1, 0);
      add_items(std::move(document), all);
    }
  } catch (const YAML::Exception& error) {
    throw Refusal(fmt::format("{}:{}: no YAML: {}", file, error.mark.line + 1, error.msg));
  }
  return all;
}

Json plain_value(const std::string& text) {
  static const std::set<std::string> nulls{"", "~", "null", "Null", "NULL"},
      trues{"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"},
      falses{"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"};
  if (nulls.contains(text)) return nullptr;
  if (trues.contains(text)) return true;
  if (falses.contains(text)) return false;
  if (const auto number = integer_of(text)) return *number;
  if (const auto number = float_of(text)) return number_of(*number);
  return text;
}

}  // namespace trainyard::local
