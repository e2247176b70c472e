#include "cli/hub_names.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/value.h"
#include "hub/fetch.h"
#include "rendezvous/place.h"

namespace trainyard::cli {
namespace {
namespace fs = std::filesystem;

/// A key that may hold a name.
struct NameKey {
  const char* key;
  std::string& (*value)(config::Config& config);
  hub::Need need;
  const char* file;  ///< of the snapshot, which the key names; "": the snapshot itself
};

constexpr const char* kConfigFile = "config.json";

std::vector<NameKey> keys_for(NamesFor what) {
  const hub::Need weights = what == NamesFor::Run ? hub::Need::Weights : hub::Need::Config;
  std::vector<NameKey> keys{
      {"model.init_from", [](config::Config& config) -> std::string& { return config.model.init_from; }, weights, ""},
      {"model.config", [](config::Config& config) -> std::string& { return config.model.config; }, hub::Need::Config,
       kConfigFile}};
  if (what == NamesFor::Run)
    keys.push_back({"data.tokenizer", [](config::Config& config) -> std::string& { return config.data.tokenizer; },
                    hub::Need::Tokenizer, ""});
  return keys;
}

/// None for what is here, and for what is no name.
std::optional<hub::Name> name_to_look_up(const std::string& value) {
  std::error_code error;
  if (value.empty() || fs::exists(value, error)) return std::nullopt;
  return hub::parse_name(value);
}

/// Looks names up, each of them once.
class LookUp {
 public:
  hub::Fetched fetch(hub::Name name, hub::Need need) {
    if (!settings_) settings_ = hub::settings_of(rendezvous::process_environment());
    const auto known = commits_.find(hub::to_string(name));
    if (known != commits_.end()) name.revision = known->second;
    hub::Fetched fetched = hub::fetch(name, hub::choice_of(need), *settings_);
    commits_.emplace(hub::to_string(name), fetched.commit);
    return fetched;
  }

  [[nodiscard]] const std::string& endpoint() const { return settings_->endpoint; }

 private:
  std::optional<hub::Settings> settings_;
  std::map<std::string, std::string> commits_;
};

/// Both places where a value was looked for.
std::string found_nowhere(const config::Loaded& loaded, const char* key, const std::string& value,
                          const std::exception& error) {
  return fmt::format("{} is '{}': there is no such file or folder here, and as a name on the hub: {}",
                     loaded.subject(key), config::shown(value), error.what());
}

void take_the_place(const NameKey& key, const hub::Name& name, LookUp& look_up, WithoutNames& result) {
  const std::string written = key.value(result.loaded.config);
  try {
    const hub::Fetched fetched = look_up.fetch(name, key.need);
    const hub::Name pinned{.repo = name.repo, .revision = fetched.commit};
    key.value(result.agreed) = hub::to_string(pinned);
    key.value(result.loaded.config) = (*key.file ? fetched.folder / key.file : fetched.folder).string();
    result.pins.push_back(fmt::format("--{}={}", key.key, hub::to_string(pinned)));
    result.loaded.understood.push_back(
        fmt::format("{} {}: commit {} of {}", key.key, written, fetched.commit, look_up.endpoint()));
  } catch (const PeerError& error) {
    throw PeerError(found_nowhere(result.loaded, key.key, written, error));
  } catch (const InputError& error) {
    throw InputError(found_nowhere(result.loaded, key.key, written, error));
  }
}

}  // namespace

WithoutNames without_names(const config::Loaded& given, NamesFor what) {
  WithoutNames result{.loaded = given, .agreed = given.config, .pins = {}};
  LookUp look_up;
  for (const NameKey& key : keys_for(what))
    if (const auto name = name_to_look_up(key.value(result.loaded.config))) take_the_place(key, *name, look_up, result);
  return result;
}

}  // namespace trainyard::cli
