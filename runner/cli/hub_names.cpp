#include "cli/hub_names.h"

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/hub_data.h"
#include "cli/s3_names.h"
#include "config/schema.h"
#include "config/value.h"
#include "hub/fetch.h"
#include "rendezvous/place.h"
#include "s3/name.h"

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

constexpr const char *kConfigFile = "config.json", *kDataPath = "data.path";

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
std::optional<hub::Name> name_to_look_up(const std::string& value, hub::RepoKind kind) {
  std::error_code error;
  if (value.empty() || fs::exists(value, error)) return std::nullopt;
  return hub::parse_name(value, kind);
}

/// What a name stands for.
struct Found {
  std::string path, commit;
};

/// Looks names up. A name that several keys have is one commit.
class LookUp {
 public:
  Found model(hub::Name name, const NameKey& key) {
    const auto known = commits_.find(hub::to_string(name));
    if (known != commits_.end()) name.revision = known->second;
    const hub::Fetched fetched = hub::fetch(name, hub::choice_of(key.need), settings());
    commits_.emplace(hub::to_string(name), fetched.commit);
    return {(*key.file ? fetched.folder / key.file : fetched.folder).string(), fetched.commit};
  }

  Found data_set(const hub::Name& name, const config::Data& data) {
    const DataSplit split = fetch_split(name, data.config, data.split, settings());
    return {split.path, split.commit};
  }

  const hub::Settings& settings() {
    if (!settings_) settings_ = hub::settings_of(rendezvous::process_environment());
    return *settings_;
  }

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

/// Calls `find`, telling in its errors which key it is for.
Found found_for(const config::Loaded& loaded, const char* key, const std::string& value,
                const std::function<Found()>& find) try {
  return find();
} catch (const PeerError& error) {
  throw PeerError(found_nowhere(loaded, key, value, error));
} catch (const InputError& error) {
  throw InputError(found_nowhere(loaded, key, value, error));
}

/// Tells of a key's name what it stands for, and has ranks take the same: the name at that commit, which is returned.
std::string pin(WithoutNames& result, const char* key, const std::string& told, hub::Name name,
                const std::string& commit, const std::string& endpoint) {
  name.revision = commit;
  result.pins.push_back(fmt::format("--{}={}", key, hub::to_string(name)));
  result.loaded.understood.push_back(fmt::format("{} {}: commit {} of {}", key, told, commit, endpoint));
  return hub::to_string(name);
}

/// A path that is here has no splits to choose from.
void require_no_split(const config::Loaded& loaded) {
  for (const char* const name : {"data.config", "data.split"}) {
    const config::Key& key = *config::find_key(name);
    if (key.get(loaded.config) == key.get(config::Config{})) continue;
    throw InputError(
        fmt::format("{}, which is for a name on the hub, but data.path is here; leave it out, and name the files "
                    "of the split in data.path",
                    loaded.statement(name)));
  }
}

void replace_models(WithoutNames& result, NamesFor what, LookUp& look_up) {
  for (const NameKey& key : keys_for(what)) {
    const std::string written = key.value(result.loaded.config);
    const auto name = name_to_look_up(written, hub::RepoKind::Model);
    if (!name) continue;
    const Found found = found_for(result.loaded, key.key, written, [&] { return look_up.model(*name, key); });
    key.value(result.loaded.config) = found.path;
    key.value(result.agreed) = pin(result, key.key, written, *name, found.commit, look_up.settings().endpoint);
  }
}

/// Tokenised, a data set lies below HF_HOME: what is in the hub's cache is the hub's alone.
void replace_data_set(WithoutNames& result, LookUp& look_up) {
  config::Data& data = result.loaded.config.data;
  const std::string written = data.path;
  const auto name = name_to_look_up(written, hub::RepoKind::Dataset);
  if (!name) return require_no_split(result.loaded);
  const Found found = found_for(result.loaded, kDataPath, written, [&] { return look_up.data_set(*name, data); });
  const std::string told =
      fmt::format("{} (split {}{})", written, data.split, data.config.empty() ? "" : " of " + data.config);
  result.agreed.data.path = pin(result, kDataPath, told, *name, found.commit, look_up.settings().endpoint);
  data.path = found.path;
  if (data.cache_dir.empty()) data.cache_dir = (look_up.settings().home / "trainyard").string();
  data.config = config::Data{}.config;  // what is read is one path now
  data.split = config::Data{}.split;
}

}  // namespace

WithoutNames without_names(const config::Loaded& given, NamesFor what) {
  WithoutNames result{.loaded = given, .agreed = given.config, .pins = {}};
  replace_s3_names(result, what);
  LookUp look_up;
  replace_models(result, what, look_up);
  if (what == NamesFor::Run) replace_data_set(result, look_up);
  return result;
}

void refuse_name(const std::string& flag, const std::string& value) {
  if (s3::is_name(value))
    throw InputError(
        fmt::format("{} is '{}', and takes no name of S3; `trainyard download {}` fetches it, and prints the path to "
                    "name",
                    flag, config::shown(value), config::shown(value)));
  if (const auto name = name_to_look_up(value, hub::RepoKind::Model))
    throw InputError(
        fmt::format("{} is '{}': there is no such file or folder here; `trainyard download {}` fetches it from the "
                    "hub, and prints the folder to name",
                    flag, config::shown(value), hub::to_string(*name)));
}

}  // namespace trainyard::cli
