#include "cli/s3_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/schema.h"
#include "config/value.h"
#include "hub/files.h"
#include "rendezvous/place.h"
#include "s3/fetch.h"

namespace trainyard::cli {
namespace {

/// A key that may hold a name.
struct S3Key {
  const char* key;
  std::string& (*value)(config::Config& config);
  std::optional<hub::Need> need;  ///< of a folder; none: all that is in it
  const char* file = nullptr;     ///< of a folder, which the key names; null: the folder itself
};

std::vector<S3Key> s3_keys_for(NamesFor what) {
  const hub::Need weights = what == NamesFor::Run ? hub::Need::Weights : hub::Need::Config;
  std::vector<S3Key> keys{
      {"model.init_from", [](config::Config& config) -> std::string& { return config.model.init_from; }, weights},
      {"model.config", [](config::Config& config) -> std::string& { return config.model.config; }, hub::Need::Config,
       "config.json"}};
  if (what == NamesFor::Plan) return keys;
  keys.push_back({"data.tokenizer", [](config::Config& config) -> std::string& { return config.data.tokenizer; },
                  hub::Need::Tokenizer});
  const auto add = [&](const char* key, std::string& (*value)(config::Config& config)) {
    keys.push_back({key, value, std::nullopt});
  };
  add("data.path", [](config::Config& config) -> std::string& { return config.data.path; });
  add("data.tokens", [](config::Config& config) -> std::string& { return config.data.tokens; });
  add("data.images", [](config::Config& config) -> std::string& { return config.data.images; });
  add("validation.path", [](config::Config& config) -> std::string& { return config.validation.path; });
  add("validation.tokens", [](config::Config& config) -> std::string& { return config.validation.tokens; });
  add("validation.images", [](config::Config& config) -> std::string& { return config.validation.images; });
  add("checkpoint.resume", [](config::Config& config) -> std::string& { return config.checkpoint.resume; });
  add("checkpoint.initial_load_path",
      [](config::Config& config) -> std::string& { return config.checkpoint.initial_load_path; });
  return keys;
}

/// Texts that are no paths.
bool is_prose(const std::string& key) {
  return key == "sample.prompt" || key == "data.prefix";
}

/// A plan reads no data, so that a name of it may stay.
void require_known_keys(const config::Loaded& loaded) {
  const std::vector<S3Key> known = s3_keys_for(NamesFor::Run);
  for (const config::Key& key : config::keys()) {
    const config::Value value = key.get(loaded.config);
    const auto* const text = std::get_if<std::string>(&value);
    if (!text || is_prose(key.full_name()) || text->find(s3::kScheme) == std::string::npos) continue;
    if (std::ranges::any_of(known, [&](const S3Key& each) { return each.key == key.full_name(); })) continue;
    std::vector<std::string> names;
    for (const S3Key& each : known) names.emplace_back(each.key);
    throw InputError(
        fmt::format("{}, but this key takes no name of S3; a folder or a file is needed, which `aws s3 sync` or "
                    "`trainyard download {}bucket/key` fetches. Keys that take one: {}",
                    loaded.statement(key.full_name()), s3::kScheme, fmt::join(names, ", ")));
  }
}

/// The files of a folder that the key needs.
hub::FileNames chosen_files(const S3Key& key, const std::string& name, const hub::FileNames& there) {
  if (!key.need) return there;
  if (const std::string lacking = hub::lacking(*key.need, there); !lacking.empty())
    throw InputError(fmt::format("{} has no {}", name, lacking));
  return hub::needed(*key.need, there);
}

s3::Fetched fetch_for(const config::Loaded& loaded, const S3Key& key, const std::string& written, s3::Client& client) {
  try {
    s3::Wanted wanted = s3::parse_wanted(written);
    wanted.chosen = [&](const s3::FileNames& there) { return chosen_files(key, to_string(wanted.name), there); };
    return s3::fetch(client, wanted);
  } catch (const PeerError& error) {
    throw PeerError(fmt::format("{}: {}", loaded.subject(key.key), error.what()));
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", loaded.subject(key.key), error.what()));
  }
}

bool has_s3_name(const config::Config& config, const std::vector<S3Key>& keys) {
  config::Config copy = config;
  return std::ranges::any_of(keys, [&](const S3Key& key) { return s3::is_name(key.value(copy)); });
}

}  // namespace

void replace_s3_names(WithoutNames& result, NamesFor what) {
  require_known_keys(result.loaded);
  const std::vector<S3Key> keys = s3_keys_for(what);
  if (!has_s3_name(result.loaded.config, keys)) return;
  const s3::Settings settings = s3::settings_of(rendezvous::process_environment());
  s3::Client client(settings);
  for (const S3Key& key : keys) {
    const std::string written = key.value(result.loaded.config);
    if (!s3::is_name(written)) continue;
    const s3::Fetched fetched = fetch_for(result.loaded, key, written, client);
    const s3::Name name = s3::parse_wanted(written).name;
    const std::string pinned = s3::with_version(name, fetched.version);
    const bool is_in_folder = key.file && std::filesystem::is_directory(fetched.path);
    key.value(result.loaded.config) = (is_in_folder ? fetched.path / key.file : fetched.path).string();
    key.value(result.agreed) = pinned;
    result.pins.push_back(fmt::format("--{}={}", key.key, pinned));
    result.loaded.understood.push_back(
        fmt::format("{} {}: {} files, version {}", key.key, to_string(name), fetched.files, fetched.version));
  }
  if (std::string& cache = result.loaded.config.data.cache_dir; cache.empty())
    cache = (settings.cache.parent_path() / "tokens").string();  // what is made of objects is no part of their folder
}

}  // namespace trainyard::cli
