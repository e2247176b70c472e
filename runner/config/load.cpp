#include "config/load.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "config/schema.h"
#include "config/yaml.h"

namespace trainyard::config {
namespace {

constexpr size_t kLargestFile = 256 * 1024;  // a configuration is a page or two; yaml-cpp takes some 50 times its size

/// An argument cut at its first '=': "--a.b=c" → {"a.b", "c"}, "--a.b" → {"a.b", none}.
struct Flag {
  std::string name;
  std::optional<std::string> value;
};

std::optional<Flag> as_flag(const std::string& argument) {
  if (!argument.starts_with("--")) return std::nullopt;
  const size_t equals = argument.find('=');
  if (equals == std::string::npos) return Flag{argument.substr(2), std::nullopt};
  return Flag{argument.substr(2, equals - 2), argument.substr(equals + 1)};
}

class ArgumentReader {
 public:
  explicit ArgumentReader(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  Arguments read() {
    while (at_ < arguments_.size()) {
      const std::string& argument = arguments_[at_++];
      const auto flag = as_flag(argument);
      if (flag && flag->name == "config")
        found_.files.push_back(value_of(*flag));
      else if (flag && flag->name == "device")
        set(*find_key("device.kind"), "--device", value_of(*flag));
      else if (flag && flag->name.find('.') != std::string::npos)
        read_setting(*flag);
      else
        found_.rest.push_back(argument);
    }
    return std::move(found_);
  }

 private:
  void read_setting(const Flag& flag) {
    if (const Key* const key = find_key(flag.name)) {
      const bool truth = std::holds_alternative<bool>(key->rule.type);
      return set(*key, "--" + flag.name, truth && !flag.value && !next_is_truth() ? "true" : value_of(flag));
    }
    if (const Key* const key = find_negated(flag.name)) {
      if (flag.value)
        throw InputError(
            fmt::format("--{} takes no value; use --{}={}", shown(flag.name), key->full_name(), shown(*flag.value)));
      return set(*key, "--" + flag.name, "false");
    }
    throw InputError(unknown_flag(flag.name));
  }

  /// "data.no_append_eos" → data.append_eos.
  static const Key* find_negated(const std::string& name) {
    const size_t dot = name.find('.');
    if (name.compare(dot + 1, 3, "no_") != 0) return nullptr;
    const Key* const key = find_key(name.substr(0, dot + 1) + name.substr(dot + 4));
    return key && std::holds_alternative<bool>(key->rule.type) ? key : nullptr;
  }

  [[nodiscard]] bool next_is_truth() const {
    return at_ < arguments_.size() && (arguments_[at_] == "true" || arguments_[at_] == "false");
  }

  std::string value_of(const Flag& flag) {
    if (flag.value) return *flag.value;
    if (at_ == arguments_.size() || arguments_[at_].starts_with("--"))
      throw InputError(fmt::format("--{} needs a value after it", shown(flag.name)));
    return arguments_[at_++];
  }

  void set(const Key& key, const std::string& subject, const std::string& text) {
    found_.settings.push_back({&key, parse_value(key.rule, text, subject), "flag", kFlagLayer});
  }

  const std::vector<std::string>& arguments_;
  size_t at_ = 0;
  Arguments found_;
};

}  // namespace

std::string Loaded::origin(const std::string& key) const {
  const auto found = origins.find(key);
  return found == origins.end() ? Origin().text : found->second.text;
}

size_t Loaded::layer(const std::string& key) const {
  const auto found = origins.find(key);
  return found == origins.end() ? kDefaultLayer : found->second.layer;
}

std::string Loaded::subject(const std::string& key) const {
  const std::string from = origin(key);
  if (from == "default") return key;
  return from == "flag" ? "--" + key : from + ": " + key;
}

std::string Loaded::statement(const std::string& key) const {
  return fmt::format("{} is {}", subject(key), shown(format_value(find_key(key)->get(config))));
}

std::string unknown_flag(const std::string& name) {
  const size_t dot = name.find('.');
  const std::string section = name.substr(0, dot);
  std::string hint = suggest_key(section, name.substr(dot + 1), "--");
  if (hint.empty()) {
    const std::string section_hint = suggest_section(section);
    hint = section_hint.empty() ? "trainyard train --help lists all" : section_hint;
  }
  return fmt::format("unknown flag --{}; {}", shown(name), hint);
}

Arguments read_arguments(const std::vector<std::string>& arguments) {
  return ArgumentReader(arguments).read();
}

void set_all(Loaded& loaded, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    setting.key->set(loaded.config, setting.value);
    loaded.origins[setting.key->full_name()] = {setting.origin, setting.layer};
  }
}

YamlText read_text(const std::string& path) {
  return {path, read_file(path, kLargestFile)};
}

Loaded load(const std::vector<std::string>& arguments, const std::vector<YamlText>& first) {
  Arguments read = read_arguments(arguments);
  Loaded loaded;
  size_t layer = kDefaultLayer;
  const auto take = [&](const YamlText& source) { set_all(loaded, on_layer(read_yaml(source), ++layer)); };
  for (const YamlText& source : first) take(source);
  for (const std::string& file : read.files) take(loaded.texts.emplace_back(read_text(file)));
  set_all(loaded, read.settings);
  loaded.rest = std::move(read.rest);
  return loaded;
}

void refuse(const std::vector<std::string>& rest) {
  if (rest.empty()) return;
  const auto flag = as_flag(rest.front());
  const std::string hint = flag ? suggest_key("", flag->name, "--") : "";
  throw InputError(
      fmt::format("unknown argument {}; {}", shown(rest.front()), hint.empty() ? "--help lists all" : hint));
}

}  // namespace trainyard::config
