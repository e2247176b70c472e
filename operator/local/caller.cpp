#include "local/caller.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

namespace trainyard::local {
namespace fs = std::filesystem;
namespace {

bool places_a_rank(const std::string& name) {
  static const std::set<std::string> exact{
      "RANK",        "LOCAL_RANK",          "WORLD_SIZE",           "LOCAL_WORLD_SIZE",       "GROUP_RANK",
      "HOSTNAME",    "TRAINYARD_JOB_TOKEN", "TRAINYARD_GENERATION", "TRAINYARD_PROGRESS_URL", "TRAINYARD_PROGRESS_CA",
      "TRAINYARD_TEMPLATE", kContainerMark};
  static const std::array<std::string, 5> prefixes{"MASTER_", "PET_", "OMPI_", "PMIX_", "TORCHELASTIC_"};
  return exact.contains(name) ||
         std::ranges::any_of(prefixes, [&](const auto& each) { return name.starts_with(each); });
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::istringstream stream(text);
  std::vector<std::string> parts;
  for (std::string part; std::getline(stream, part, separator);)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

/// "nvidia3", not "nvidiactl": of a machine's GPUs a container may have the fourth alone.
bool is_gpu(const std::string& file) {
  constexpr std::string_view kPrefix = "nvidia";
  return file.starts_with(kPrefix) && file.size() > kPrefix.size() &&
         std::all_of(file.begin() + kPrefix.size(), file.end(), [](unsigned char each) { return std::isdigit(each); });
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

std::vector<std::string> environment_with(const Variables& variables) {
  Variables all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos && !places_a_rank(text.substr(0, equals)))
      all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : variables) all[name] = value;
  std::string& path = all["PATH"];
  path += (path.empty() ? "" : ":") + own_folder();
  std::vector<std::string> environment;
  for (const auto& [name, value] : all) environment.push_back(name + "=" + value);
  return environment;
}

bool is_on_path(const std::string& program) {
  if (program.empty() || program.find('/') != std::string::npos) return false;
  return std::ranges::any_of(split(variable("PATH") + ":" + own_folder(), ':'), [&](const std::string& folder) {
    const fs::path file = fs::path(folder) / program;
    return fs::is_regular_file(file) && ::access(file.c_str(), X_OK) == 0;
  });
}

std::string own_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path().string();
}

std::string machine_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::vector<std::string> gpus_here(const fs::path& devices) {
  if (const char* const chosen = std::getenv("CUDA_VISIBLE_DEVICES")) return split(chosen, ',');
  std::vector<std::string> gpus;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(devices, none))
    if (is_gpu(entry.path().filename())) gpus.push_back(fmt::format("{}", gpus.size()));
  return gpus;
}

}  // namespace trainyard::local
