#include "s3/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace trainyard::s3 {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostFileBytes = size_t{1} << 20;

bool is_space(char c) {
  return c == ' ' || c == '\t';
}

/// Without a comment: '#' and ';' begin one at the begin of a line, and after a space.
std::string_view without_comment(std::string_view line) {
  for (size_t at = 0; at < line.size(); ++at)
    if ((line[at] == '#' || line[at] == ';') && (at == 0 || is_space(line[at - 1]))) return line.substr(0, at);
  return line;
}

/// "[ profile  x ]" is "profile x".
std::string section_name(std::string_view line) {
  std::string name;
  for (const std::string& word : split(trim(line.substr(1, line.size() - 2)), ' '))
    if (!word.empty()) name += (name.empty() ? "" : " ") + word;
  return name;
}

fs::path file_of(const Environment& environment, std::string_view variable, std::string_view name) {
  const std::string home = value_of(environment, "HOME"), given = value_of(environment, variable);
  if (given.starts_with("~/")) return home + given.substr(1);
  if (!given.empty()) return given;
  return home.empty() ? fs::path() : fs::path(home) / ".aws" / name;
}

std::map<std::string, Section, std::less<>> sections_in(const fs::path& file) {
  std::error_code error;
  if (file.empty() || !fs::is_regular_file(file, error)) return {};
  return parse_sections(read_file(file, kMostFileBytes), file.string());
}

}  // namespace

std::string value_of(const std::map<std::string, std::string, std::less<>>& values, std::string_view name) {
  const auto found = values.find(name);
  return found == values.end() ? "" : found->second;
}

std::map<std::string, Section, std::less<>> parse_sections(std::string_view text, const std::string& where) {
  std::map<std::string, Section, std::less<>> sections;
  Section* section = nullptr;
  std::string parent;  // "s3", whose settings are indented
  int number = 0;
  for (const std::string& whole : split(text, '\n')) {
    ++number;
    const auto fail = [&](const char* what) {
      return InputError(fmt::format("{}:{}: {}; [section] or name = value is needed", where, number, what));
    };
    const bool is_indented = !whole.empty() && is_space(whole.front());
    const std::string_view line = trim(without_comment(whole));
    if (line.empty()) continue;
    if (line.front() == '[') {
      if (line.back() != ']') throw fail("a section has no ']' at its end");
      section = &sections[section_name(line)];
      parent.clear();
      continue;
    }
    const size_t equals = line.find('=');
    if (!section) throw fail("a line stands before the first section");
    if (equals == std::string_view::npos) throw fail("a line is neither a section nor a setting");
    const std::string name(trim(line.substr(0, equals))), value(trim(line.substr(equals + 1)));
    if (is_indented && !parent.empty()) {
      (*section)[parent + "." + name] = value;
      continue;
    }
    (*section)[name] = value;
    parent = value.empty() ? name : "";
  }
  return sections;
}

Profile read_profile(const Environment& environment) {
  std::string given = value_of(environment, "AWS_PROFILE");
  if (given.empty()) given = value_of(environment, "AWS_DEFAULT_PROFILE");
  Profile profile{.name = given.empty() ? "default" : given, .settings = {}, .for_services = {}};
  const fs::path config_file = file_of(environment, "AWS_CONFIG_FILE", "config");
  const fs::path credentials_file = file_of(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
  const auto config = sections_in(config_file), credentials = sections_in(credentials_file);
  const auto of_config = config.find(
      profile.name == "default" && !config.contains("profile default") ? profile.name : "profile " + profile.name);
  const auto of_credentials = credentials.find(profile.name);
  if (!given.empty() && of_config == config.end() && of_credentials == credentials.end())
    throw InputError(fmt::format("AWS_PROFILE is '{}', but neither {} nor {} has a profile of that name", given,
                                 config_file.string(), credentials_file.string()));
  if (of_credentials != credentials.end()) profile.settings = of_credentials->second;
  if (of_config != config.end()) profile.settings.insert(of_config->second.begin(), of_config->second.end());
  if (const auto services = profile.settings.find("services"); services != profile.settings.end())
    if (const auto found = config.find("services " + services->second); found != config.end())
      profile.for_services = found->second;
  return profile;
}

}  // namespace trainyard::s3
