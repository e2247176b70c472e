#include "config/yaml_document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/text.h"

namespace trainyard::config {
namespace {

/// Remembers where a document begins and nothing else.
class DocumentStart : public YAML::EventHandler {
 public:
  int line = 0;

  void OnDocumentStart(const YAML::Mark& mark) override { line = mark.line; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

/// YAML::LoadAll would tell, but it never ends on text such as `!t,a`, of which the parser takes nothing.
std::optional<int> line_of_second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart first, second;
  if (!parser.HandleNextDocument(first) || !parser.HandleNextDocument(second)) return std::nullopt;
  return second.line;
}

[[noreturn]] void fail(const YamlText& source, ptrdiff_t line, const std::string& what) {
  throw InputError(fmt::format("{}:{}: {}", source.name, line + 1, what));
}

/// Where up to `last` a tab stands before the first word of a line: YAML takes none there, and says so of another place.
/// JSON may have them.
std::optional<int> line_indented_by_tab(std::string_view text, int last) {
  if (trim(text).starts_with('{')) return std::nullopt;
  int line = 0;
  for (const std::string& each : split(text, '\n')) {
    if (line > last) return std::nullopt;
    const size_t word = each.find_first_not_of(" \t");
    if (word != std::string::npos && each[word] != '#' && each.find('\t') < word) return line;
    ++line;
  }
  return std::nullopt;
}

/// Collects the entries of a mapping and of those that it merges. Aliases may repeat and even contain themselves, so
/// depth and number are bounded.
class Merger {
 public:
  explicit Merger(const YamlText& source) : source_(source) {}

  void add(const YAML::Node& mapping, int depth) {
    if (depth > kDeepest || ++mappings_ > kMost)
      fail(source_, mapping.Mark().line, "<<: merges too many mappings, or one into itself");
    std::vector<YAML::Node> merged;
    std::set<std::string> own;
    for (const auto& entry : mapping) {
      const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (name == "<<")
        merged.push_back(entry.second);
      else if (name.empty() || !taken_.contains(name))
        entries_.push_back({entry.first, entry.second}), own.insert(name);
    }
    taken_.insert(own.begin(), own.end());
    for (const YAML::Node& each : merged) merge(each, depth);
  }

  std::vector<YamlEntry> take() { return std::move(entries_); }

 private:
  static constexpr int kDeepest = 16;
  static constexpr int kMost = 10'000;

  void merge(const YAML::Node& value, int depth) {
    if (value.IsMap()) return add(value, depth + 1);
    if (value.IsSequence() && std::all_of(value.begin(), value.end(), [](const auto& each) { return each.IsMap(); })) {
      for (const YAML::Node& each : value) add(each, depth + 1);
      return;
    }
    fail(source_, value.Mark().line, "<<: takes a mapping, such as *defaults, or a list of mappings");
  }

  const YamlText& source_;
  int mappings_ = 0;
  std::vector<YamlEntry> entries_;
  std::set<std::string> taken_;
};

}  // namespace

std::vector<YamlEntry> entries_of(const YamlText& source, const YAML::Node& mapping) {
  Merger merger(source);
  merger.add(mapping, 0);
  return merger.take();
}

YAML::Node parse_yaml(const YamlText& source) {
  // yaml-cpp takes EOT (0x04) for its own mark of the end, and would read half of such a file without a word.
  if (const auto at = first_unreadable(source.text))
    fail(source, std::count(source.text.begin(), source.text.begin() + static_cast<ptrdiff_t>(*at), '\n'),
         fmt::format("byte 0x{:02x} is no UTF-8 text", static_cast<unsigned char>(source.text[*at])));
  try {
    if (const auto line = line_of_second_document(source.text))
      fail(source, *line, "a second document begins here; one file holds one");
    return YAML::Load(source.text);
  } catch (const YAML::Exception& error) {
    if (const auto line = line_indented_by_tab(source.text, error.mark.line + 1))
      fail(source, *line, "a tab indents this line, and YAML takes only spaces there");
    throw InputError(fmt::format("{}:{}:{}: malformed YAML: {}", source.name, error.mark.line + 1,
                                 error.mark.column + 1, shown(error.msg)));
  }
}

}  // namespace trainyard::config
