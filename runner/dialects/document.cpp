#include "dialects/document.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "config/yaml_document.h"

namespace trainyard::dialects {
namespace {

constexpr size_t kDeepest = 16;  // real files have three levels

class YamlReader {
 public:
  explicit YamlReader(const config::YamlText& source) : source_(source) {}

  Document read() {
    const YAML::Node root = config::parse_yaml(source_);
    if (root.IsNull()) return {};
    if (!root.IsMap()) throw InputError(where(root) + ": a mapping of keys is expected here");
    read_map("", root, 0);
    return std::move(document_);
  }

 private:
  void read_map(const std::string& prefix, const YAML::Node& map, size_t depth) {
    if (depth == kDeepest) throw InputError(fmt::format("{}: mappings are nested too deeply", where(map)));
    for (const auto& [name, value] : config::entries_of(source_, map)) {
      if (!name.IsScalar()) throw InputError(where(name) + ": a name is expected here");
      const std::string key = prefix + config::shown(name.Scalar());
      refuse_repeated(key, name);
      if (value.IsMap() && value.size() > 0)
        read_map(key + ".", value, depth + 1);
      else
        document_.push_back({key, text_of(value), where(name)});
    }
  }

  void refuse_repeated(const std::string& key, const YAML::Node& node) const {
    if (const Entry* const before = find(document_, key))
      throw InputError(
          fmt::format("{}: {} was already given at {}; keep one", where(node), config::shown(key), before->origin));
  }

  static std::string text_of(const YAML::Node& node) {
    if (node.IsNull()) return "null";
    if (node.IsScalar()) return node.Scalar();
    if (node.IsMap()) return "{}";
    std::vector<std::string> parts;
    for (const YAML::Node& part : node) parts.push_back(part.IsScalar() ? part.Scalar() : "…");
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }

  [[nodiscard]] std::string where(const YAML::Node& node) const {
    return fmt::format("{}:{}", source_.name, node.Mark().line + 1);
  }

  const config::YamlText& source_;
  Document document_;
};

}  // namespace

const Entry* find(const Document& document, std::string_view key) {
  const auto found = std::ranges::find(document, key, &Entry::key);
  return found == document.end() ? nullptr : &*found;
}

std::string value_of(const Document& document, std::string_view key, std::string_view otherwise) {
  const Entry* const entry = find(document, key);
  return entry ? entry->value : std::string(otherwise);
}

bool has_key(const config::YamlText& source, const char* key) {
  const YAML::Node root = config::parse_yaml(source);
  if (!root.IsMap()) return false;
  return std::ranges::any_of(config::entries_of(source, root), [&](const config::YamlEntry& entry) {
    return entry.name.IsScalar() && entry.name.Scalar() == key;
  });
}

Document read_document(const config::YamlText& source) {
  return YamlReader(source).read();
}

}  // namespace trainyard::dialects
