#include "dialects/launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "dialects/tables.h"

namespace trainyard::dialects {
namespace {

/// Variables that say the same as a flag of the launcher.
struct Equal {
  std::string_view flag;
  std::array<const char*, 3> variables;
};
constexpr std::array<Equal, 5> kEqual{{{"--nnodes", {"PET_NNODES", "WORLD_SIZE", ""}},
                                       {"--nproc-per-node", {"PET_NPROC_PER_NODE", "", ""}},
                                       {"--node-rank", {"PET_NODE_RANK", "RANK", ""}},
                                       {"--master-addr", {"MASTER_ADDR", "PET_MASTER_ADDR", "PET_RDZV_ENDPOINT"}},
                                       {"--master-port", {"MASTER_PORT", "PET_MASTER_PORT", "PET_RDZV_ENDPOINT"}}}};

/// What the launcher's errors call a key: the flag that it becomes, or what is missing where it is not given.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kKeys{
    {{"--nnodes", "num_machines"},
     {"--nproc-per-node", "num_processes"},
     {"--node-rank", "machine_rank"},
     {"PET_NODE_RANK (or RANK)", "machine_rank"},
     {"--master-addr", "main_process_ip"},
     {"MASTER_ADDR", "main_process_ip"},
     {"--master-port", "main_process_port"},
     {"MASTER_PORT", "main_process_port"}}};

/// "PET_NNODES=2" where the environment says what `input` would.
std::string said_already(const LauncherInput& input, const Environment& environment) {
  const auto variable_in = [&](std::string_view name) {
    const auto found = environment.find(name);
    return found == environment.end() ? "" : fmt::format("{}={}", name, found->second);
  };
  if (!input.name.starts_with("--")) return variable_in(input.name);
  for (const Equal& equal : kEqual)
    for (const char* const variable : equal.variables)
      if (input.name == equal.flag && !variable_in(variable).empty()) return variable_in(variable);
  return "";
}

std::vector<LauncherInput> inputs_of(const std::string& path) {
  const config::YamlText text = config::read_text(path);
  if (!is_accelerate(text))
    throw InputError(fmt::format("{}: a file of `accelerate config` has distributed_type; this has none", path));
  const Translation translation = translate(accelerate(), read_accelerate(text));
  refuse(translation.problems);
  return translation.launcher;
}

}  // namespace

LauncherAdvice advice_of(const std::string& path, const Environment& environment) {
  LauncherAdvice advice;
  for (const LauncherInput& input : inputs_of(path)) {
    const std::string said = said_already(input, environment);
    if (!said.empty()) {
      if (!said.ends_with("=" + input.value))
        advice.notes.push_back(fmt::format("{}: {} {} is not used: the environment has {}", input.entry.origin,
                                           input.entry.key, config::shown(input.entry.value), config::shown(said)));
    } else if (input.name.starts_with("--")) {
      advice.flags.push_back(input.name + "=" + input.value);
    } else {
      advice.environment[input.name] = input.value;
    }
  }
  return advice;
}

std::string in_words_of(const std::string& path, const std::string& error, const std::vector<std::string>& given,
                        const Environment& environment) {
  const auto is_said = [&](std::string_view name) {
    const auto is_it = [&](const std::string& flag) {
      return replaced(flag.substr(0, flag.find('=')), "_", "-") == name;
    };
    return environment.contains(name) || std::ranges::any_of(given, is_it);
  };
  std::string text = error;
  for (const auto& [name, key] : kKeys)
    if (!is_said(name)) text = replaced(std::move(text), name, key);
  return text == error ? error : fmt::format("{}: {}", path, text);
}

std::optional<World> world_of(const std::string& path) {
  std::optional<int64_t> nodes = 1, ranks;
  for (const LauncherInput& input : inputs_of(path)) {
    if (input.name == "--nnodes") nodes = parse_int(input.value);
    if (input.name == "--nproc-per-node") ranks = parse_int(input.value);
  }
  if (!nodes || !ranks) return std::nullopt;
  return World{static_cast<int>(*nodes), static_cast<int>(*ranks)};
}

std::string default_accelerate_path(const Environment& environment) {
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  std::string cache = value("HF_HOME");
  if (cache.empty() && !value("XDG_CACHE_HOME").empty()) cache = value("XDG_CACHE_HOME") + "/huggingface";
  if (cache.empty()) cache = value("HOME") + "/.cache/huggingface";
  return cache + "/accelerate/default_config.yaml";
}

}  // namespace trainyard::dialects
