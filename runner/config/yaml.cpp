#include "config/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "config/problem.h"
#include "config/yaml_document.h"

namespace trainyard::config {
namespace {

/// A section whose name begins so holds what others take by aliases, and no settings.
constexpr const char* kAside = "x-";

/// yaml-cpp counts from 0, people from 1.
int line_of(const YAML::Node& node) {
  return node.Mark().line + 1;
}

class Reader {
 public:
  explicit Reader(const YamlText& source) : source_(source) {}

  std::vector<Setting> read() {
    const YAML::Node root = parse_yaml(source_);
    if (root.IsNull()) return {};
    if (!root.IsMap()) fail(root, "a configuration is a mapping of sections, such as training:");
    for (const auto& [section, body] : entries_of(source_, root)) read_section(section, body);
    refuse(problems_);
    return std::move(settings_);
  }

 private:
  /// Does `read`; what is wrong with it is kept, as what comes after it may be wrong too.
  void keep_problem(const std::string& name, bool is_unknown, const std::function<void()>& read) {
    try {
      read();
    } catch (const InputError& error) {
      problems_.push_back({error.what(), name, is_unknown});
    }
  }

  void read_section(const YAML::Node& name_node, const YAML::Node& body) {
    const std::string section = name(name_node);
    if (section.starts_with(kAside)) return;
    const bool is_known = std::ranges::find(sections(), section, &SectionHelp::name) != sections().end();
    keep_problem(section, !is_known, [&] {
      if (!is_known) fail_unknown_section(name_node, section);
      note(name_node, section);
      if (body.IsNull()) return;  // all its keys are commented out
      if (!body.IsMap()) fail(name_node, fmt::format("section {} holds no keys; write them indented below it", section));
      for (const auto& [key, value] : entries_of(source_, body)) read_key(section, key, value);
    });
  }

  void read_key(const std::string& section, const YAML::Node& name_node, const YAML::Node& body) {
    const std::string key_name = name(name_node);
    const std::string full_name = section + "." + key_name;
    const Key* const key = find_key(full_name);
    keep_problem(full_name, !key, [&] {
      if (!key) fail_unknown_key(name_node, section, key_name);
      read_value(*key, full_name, name_node, body);
    });
  }

  void read_value(const Key& key, const std::string& full_name, const YAML::Node& name_node, const YAML::Node& body) {
    note(name_node, full_name);
    const std::string origin = where(name_node);
    settings_.push_back(
        {&key, parse_value(key.rule, text(key, name_node, body), fmt::format("{}: {}", origin, full_name)), origin});
  }

  std::string name(const YAML::Node& node) const {
    if (!node.IsScalar()) fail(node, "a name is expected here");
    return node.Scalar();
  }

  /// The value's text. A list is joined to what a flag would have.
  std::string text(const Key& key, const YAML::Node& name_node, const YAML::Node& body) const {
    if (body.IsNull())
      fail(name_node, fmt::format("{} has no value; leave the line out for the default{}", key.full_name(),
                                  std::holds_alternative<std::string>(key.rule.type) ? ", or write \"\"" : ""));
    if (body.IsScalar()) return body.Scalar();
    const bool fits = body.IsSequence() && std::holds_alternative<std::vector<double>>(key.rule.type);
    if (!fits)
      fail(name_node, fmt::format("{} is a {}; it must be {}", key.full_name(), body.IsMap() ? "mapping" : "list",
                                  expected_kind(key)));
    std::vector<std::string> entries;
    for (const YAML::Node& entry : body) entries.push_back(entry.IsScalar() ? entry.Scalar() : "?");
    return fmt::format("[{}]", fmt::join(entries, ", "));
  }

  static std::string expected_kind(const Key& key) {
    return key.rule.choices.empty() ? type_name(key.rule) : "one of " + range_text(key.rule);
  }

  /// Refuses a name that was there before: which of two values is meant is not ours to guess.
  void note(const YAML::Node& node, const std::string& full_name) {
    const auto [before, added] = seen_.emplace(full_name, line_of(node));
    if (!added) fail(node, fmt::format("{} was already given at line {}; keep one", full_name, before->second));
  }

  [[noreturn]] void fail_unknown_key(const YAML::Node& node, const std::string& section, const std::string& name) const {
    const std::string hint = suggest_key(section, name, "");
    fail(node, fmt::format("unknown key {}; {}", shown(section + "." + name),
                           hint.empty() ? "trainyard train --help lists all" : hint));
  }

  [[noreturn]] void fail_unknown_section(const YAML::Node& node, const std::string& section) const {
    if (find_key(section)) {
      const size_t dot = section.find('.');
      fail(node, fmt::format("{} is written as two lines in YAML: {}: and, indented below it, {}:", section,
                             section.substr(0, dot), section.substr(dot + 1)));
    }
    const std::string hint = suggest_section(section);
    fail(node, fmt::format("unknown section {}; {}", shown(section),
                           !hint.empty()            ? hint
                           : holds_anchor(node)     ? "what only aliases use stands in a section named x-…"
                                                    : "trainyard train --help lists all"));
  }

  /// Whether the line of `node` names what it holds: "defaults: &defaults".
  [[nodiscard]] bool holds_anchor(const YAML::Node& node) const {
    const std::vector<std::string> lines = split(source_.text, '\n');
    return lines.at(static_cast<size_t>(line_of(node) - 1)).find(": &") != std::string::npos;
  }

  [[nodiscard]] std::string where(const YAML::Node& node) const {
    return fmt::format("{}:{}", source_.name, line_of(node));
  }
  [[noreturn]] void fail(const YAML::Node& node, const std::string& what) const {
    throw InputError(where(node) + ": " + what);
  }

  const YamlText& source_;
  std::vector<Setting> settings_;
  std::map<std::string, int> seen_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Setting> read_yaml(const YamlText& source) {
  return Reader(source).read();
}

}  // namespace trainyard::config
