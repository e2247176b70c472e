#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <functional>

#include "base/open_file.h"
#include "checkpoint/reader.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// A rank's share of the files: over all ranks, or over those of its host where the folder is only that host's.
std::optional<std::string> find_damage_in_share(const Checkpoint& checkpoint, const Agreement& ranks) {
  const Manifest& manifest = checkpoint.manifest();
  const auto found = std::ranges::find(manifest.members, ranks.rank());
  if (manifest.is_shared() || found == manifest.members.end())
    return find_damage(checkpoint, ranks.rank(), ranks.world());
  return find_damage(checkpoint, static_cast<int>(found - manifest.members.begin()),
                     static_cast<int>(manifest.members.size()));
}

struct Tried {
  std::optional<Checkpoint> checkpoint;
  std::string damage;  ///< where there is none
};

/// Collective. Every rank opens `folder` and verifies its share; all get it, or none. Throws InputError for one that is
/// too new or may not be read: going on from an older one would leave what it holds behind.
Tried try_to_open(const fs::path& folder, Agreement& ranks) {
  Tried tried;
  json say = json::object();
  try {
    tried.checkpoint.emplace(folder);
    if (const auto damage = find_damage_in_share(*tried.checkpoint, ranks)) say["error"] = *damage;
  } catch (const NewerVersionError& error) {
    say = {{"refused", error.what()}};
  } catch (const DeniedError& error) {
    say = {{"refused", fmt::format("{}; let the user that trains read it: it may be whole, and no checkpoint before it "
                                   "stands in for it",
                                   error.what())}};
  } catch (const std::exception& error) {
    say["error"] = error.what();
  }
  const json verdict = ranks.round_of_all("verifying " + folder.string(), say, [](const Agreement::Said& said) -> json {
    for (const auto& each : said)
      if (each->contains("refused")) return *each;
    if (const auto error = Agreement::first_error(said)) return {{"error", *error}};
    return json::object();
  });
  if (verdict.contains("refused")) throw VerdictError(verdict.at("refused"), ranks.rank() == 0);
  if (!verdict.contains("error")) return tried;
  return {std::nullopt, verdict.at("error").get<std::string>()};
}

/// A manifest that is damaged says nothing of whose it is: what `job` saved before it is then used. One that may not be
/// read may be the job's.
bool is_of(const std::string& job, const fs::path& folder) {
  try {
    return read_manifest(folder).job == job;
  } catch (const DeniedError&) {
    return true;
  } catch (const InputError&) {
    return false;
  }
}

using Admits = std::function<bool(const fs::path& folder)>;

/// Collective. The names of rank 0's candidates: on folders that are not shared the others look for the same steps.
std::vector<std::string> agree_on_candidates(const fs::path& folder, const Naming& naming, const Admits& admits,
                                             Agreement& ranks) {
  json names = json::array();
  if (ranks.rank() == 0)
    for (const StepFolder& each : candidates(folder, naming))
      if (admits(each.path)) names.push_back(each.path.filename().string());
  const json answer = ranks.round_of_all("looking for checkpoints in " + folder.string(), {{"names", names}},
                                         [](const Agreement::Said& said) { return *said.at(0); });
  return answer.at("names");
}

/// Where somebody removed the newest checkpoint, going back must not look like going on.
void warn_of_lost(const fs::path& folder, const Naming& naming, const std::vector<std::string>& names) {
  if (const std::string lost = lost_latest(folder, naming); !lost.empty())
    spdlog::warn("{}: the newest checkpoint, {}, is not there any more; {}", folder.string(), lost,
                 names.empty() ? "there is none before it" : fmt::format("going back to {}", names.front()));
}

std::optional<Checkpoint> newest_intact(const fs::path& folder, const Naming& naming, const Admits& admits,
                                        Agreement& ranks) {
  const std::vector<std::string> names = agree_on_candidates(folder, naming, admits, ranks);
  if (ranks.rank() == 0) warn_of_lost(folder, naming, names);
  std::string last_damage;
  for (const std::string& name : names) {
    Tried tried = try_to_open(folder / name, ranks);
    if (tried.checkpoint) return std::move(tried.checkpoint);
    last_damage = tried.damage;
    if (ranks.rank() == 0)
      spdlog::warn("Checkpoint {} is damaged and left out; trying the one before it: {}", (folder / name).string(),
                   tried.damage);
  }
  if (names.empty()) return std::nullopt;
  throw VerdictError(
      fmt::format("{}: none of its {} checkpoints is intact ({}); restore one, or start afresh with checkpoint.resume "
                  "never or another checkpoint.dir",
                  folder.string(), names.size(), last_damage),
      ranks.rank() == 0);
}

}  // namespace

std::optional<Checkpoint> find_latest(const fs::path& folder, Agreement& ranks, const Naming& naming) {
  return newest_intact(
      folder, naming, [](const fs::path&) { return true; }, ranks);
}

std::optional<Checkpoint> find_latest_of(const std::string& job, const fs::path& folder, Agreement& ranks,
                                         const Naming& naming) {
  return newest_intact(
      folder, naming, [&job](const fs::path& each) { return is_of(job, each); }, ranks);
}

Checkpoint open_checkpoint(const fs::path& given, Agreement& ranks) {
  const fs::path path = as_spelled(given);
  if (locate(path) != path) return find_latest(path, ranks, naming_in(path)).value();
  Tried tried = try_to_open(path, ranks);
  if (!tried.checkpoint)
    throw VerdictError(fmt::format("{}: damaged: {}", path.string(), tried.damage), ranks.rank() == 0);
  return std::move(*tried.checkpoint);
}

}  // namespace trainyard::checkpoint
