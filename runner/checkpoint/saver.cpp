#include "checkpoint/saver.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/division.h"
#include "checkpoint/layout.h"
#include "checkpoint/shard_file.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// What went wrong, without the words that the library puts before it.
std::string reason_of(const std::exception& error) {
  std::string_view what = error.what();
  constexpr std::string_view kPrefix = "filesystem error: ";
  if (what.starts_with(kPrefix)) what.remove_prefix(kPrefix.size());
  return std::string(what);
}

/// Rank 0's word, where all have done their part.
json all_or_error(const Agreement::Said& said) {
  if (const auto error = Agreement::first_error(said)) return {{"error", *error}};
  return *said[0];
}

/// The outcome that every rank gets: the bytes of all folders together.
json sum_of_bytes(const Agreement::Said& said) {
  if (const auto error = Agreement::first_error(said)) return {{"error", *error}};
  uint64_t bytes = 0;
  for (const auto& each : said) bytes += each->value("bytes", uint64_t{0});
  return {{"bytes", bytes}};
}

/// The words of a round: what it is for, and what a rank has written.
std::string about(const Snapshot& snapshot) {
  return fmt::format("checkpoint of step {}", snapshot.step);
}
json listed(const std::vector<StoredFile>& files) {
  json list = json::array();
  for (const StoredFile& file : files)
    list.push_back({{"name", file.name}, {"bytes", file.bytes}, {"checksum", file.checksum}});
  return list;
}

bool is_absent(const fs::path& folder) {
  std::error_code ignored;  // whoever may not look will hear of it when it writes
  return fs::status(folder, ignored).type() == fs::file_type::not_found;
}

std::string now_as_text() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace

Saver::Saver(SaverOptions options, rendezvous::Store& store, std::shared_ptr<Disk> disk)
    : options_(std::move(options)),
      found_folder_(!is_absent(options_.folder)),
      disk_(std::move(disk)),
      ranks_(store, "checkpoint/save", options_.rank, options_.world, options_.timeout),
      group_(find_group(options_.folder, ranks_, options_.sharing_patience)),
      fence_(options_.folder, options_.naming),
      owner_{options_.job, options_.generation, random_name() + random_name()} {
  claim_folder();
}

Saver::~Saver() {
  if (found_folder_ || !leads()) return;
  try {
    fence_.withdraw(owner_);
  } catch (const std::exception&) {  // then an empty folder stays
  }
}

void Saver::claim_folder() {
  json say{{"life", owner_.life}};
  if (leads()) try {
      fence_.claim(owner_);
      remove_leftovers();
    } catch (const std::exception& error) {
      say["error"] = reason_of(error);
    }
  const json claimed = ranks_.round_of_all("claiming checkpoint.dir", say, all_or_error);
  if (claimed.contains("error")) throw VerdictError(claimed.at("error"), ranks_.rank() == 0);
  life_ = claimed.at("life");
}

/// What crashed saves left, and ranks that the claim has just fenced off: theirs could not be committed any more.
void Saver::remove_leftovers() {
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(options_.folder))
    if (const std::string name = entry.path().filename().string();
        is_temporary(name) && options_.naming.may_remove(name))
      leftovers.push_back(entry.path());
  for (const fs::path& each : leftovers) {
    if (fs::is_directory(each)) spdlog::info("Removing {}: an unfinished save left it", each.string());
    try_to_remove(*disk_, each);
  }
}

Saver::Paths Saver::paths_of(int64_t step) {
  // Unique for each try: neither a rank that is late in a save given up, nor one that an earlier life of the run left
  // behind, ever writes into another save of the same step.
  const std::string unique = fmt::format("generation-{}.{}-{}", options_.generation, life_, ++saves_);
  const Naming& naming = options_.naming;
  return {.temporary = options_.folder / fmt::format(".{}.{}.tmp", naming.folder_of(step), unique),
          .final = options_.folder / naming.folder_of(step),
          .pointer = options_.folder / fmt::format(".{}.{}.tmp", naming.pointer(), unique)};
}

SaveResult Saver::save(const Snapshot& snapshot) {
  return save_by(snapshot, [&](const Paths& paths, const Agreement::Decide& all_or_cleared) {
    return ranks_.round(about(snapshot), write_own(snapshot, paths), all_or_cleared);
  });
}

SaveResult Saver::save_full(const Snapshot& snapshot, const Gather& gather) {
  return save_by(snapshot, [&](const Paths& paths, const Agreement::Decide& all_or_cleared) {
    return write_full(snapshot, gather, paths, all_or_cleared);
  });
}

/// `write` gives what the ranks agree on once all have written.
SaveResult Saver::save_by(const Snapshot& snapshot, const Write& write) {
  const auto begin = Clock::now();
  const Paths paths = paths_of(snapshot.step);
  if (options_.rank == 0) spdlog::info("Saving checkpoint step {} to {}", snapshot.step, paths.final.string());
  // The leader clears up before the others hear of a failure: their next save may need the space.
  const auto all_or_cleared = [&](const Agreement::Said& said) {
    json verdict = all_or_error(said);
    if (verdict.contains("error")) try_to_remove(*disk_, paths.temporary);
    return verdict;
  };
  json outcome = write(paths, all_or_cleared);
  if (!outcome.contains("error"))
    outcome = ranks_.round(about(snapshot), commit_if_leading(snapshot, paths), sum_of_bytes);
  if (leads()) {
    if (outcome.contains("error"))
      try_to_remove(*disk_, paths.temporary);  // a host's own folder, and what came late
    else
      retain(snapshot.step);  // not before all have it: hosts with folders of their own resume from a step of all
  }
  SaveResult result{.step = snapshot.step, .seconds = std::chrono::duration<double>(Clock::now() - begin).count()};
  if (outcome.contains("error")) {
    result.reason = outcome.at("error");
    return result;
  }
  result.saved = true;
  result.path = paths.final;
  result.bytes = outcome.at("bytes");
  return result;
}

Snapshot Saver::own_part(const Snapshot& snapshot) const {
  return checkpoint::own_part(snapshot, options_.rank, group_.members);
}

json Saver::write_own(const Snapshot& snapshot, const Paths& paths) {
  try {
    disk_->create_folders(paths.temporary);
    const Snapshot own = own_part(snapshot);
    const auto stop_if_given_up = [this] {
      if (ranks_.is_given_up()) throw PeerError("given up, as a rank is lost");
    };
    std::vector<StoredFile> files;
    if (leads() && snapshot.files) files = write_files(*disk_, paths.temporary, *snapshot.files);
    for (const auto& [kind, shards] : {std::pair(Kind::Model, &own.model), std::pair(Kind::Optimizer, &own.optimizer)})
      for (StoredFile& file :
           write_shards(*disk_, paths.temporary, kind, options_.rank, *shards, stop_if_given_up))
        files.push_back(std::move(file));
    return {{"files", listed(files)}, {"state", snapshot.rank_state}};
  } catch (const std::exception& error) {
    return {{"error", reason_of(error)}};
  }
}

json Saver::write_full(const Snapshot& snapshot, const Gather& gather, const Paths& paths,
                       const Agreement::Decide& all_or_cleared) {
  FullWriter writer(*disk_, paths.temporary, options_.max_file_bytes);
  json say = json::object();
  const auto if_leading = [&](const auto& write) {
    if (!leads() || say.contains("error")) return;
    try {
      write();
    } catch (const std::exception& error) {
      say["error"] = reason_of(error);
    }
  };
  if_leading([&] {
    disk_->create_folders(paths.temporary);
    writer.write_description(snapshot);
  });
  for (const auto& [kind, shards] :
       {std::pair(Kind::Model, &snapshot.model), std::pair(Kind::Optimizer, &snapshot.optimizer)}) {
    if_leading([&] { writer.begin(kind, *shards); });
    for (const Shard& shard : *shards) {
      if (json verdict = ranks_.round(about(snapshot), say, all_or_cleared); verdict.contains("error")) return verdict;
      const Tensor whole = gather(shard);
      if_leading([&] { writer.append(whole); });
    }
    if_leading([&] { writer.end(); });
  }
  say["files"] = listed(writer.files());
  say["state"] = snapshot.rank_state;
  return ranks_.round(about(snapshot), say, all_or_cleared);
}

json Saver::commit_if_leading(const Snapshot& snapshot, const Paths& paths) {
  if (!leads()) return json::object();
  try {
    const Manifest manifest = collect(snapshot, paths);
    put_in_place(manifest, paths);
    try_to_remove(*disk_, paths.temporary);  // the checkpoint of the same step that was replaced
    return {{"bytes", manifest.bytes()}};
  } catch (const std::exception& error) {
    try_to_remove(*disk_, paths.pointer);
    try_to_remove(*disk_, paths.temporary);
    return {{"error", reason_of(error)}};
  }
}

Manifest Saver::collect(const Snapshot& snapshot, const Paths& paths) {
  Manifest manifest{.step = snapshot.step,
                    .generation = options_.generation,
                    .job = options_.job,
                    .world = options_.world,
                    .members = group_.members,
                    .saved_at = now_as_text(),
                    .files = {},
                    .tensors = {},
                    .state = snapshot.state,
                    .rank_states = {}};
  for (json& said : ranks_.said_by(group_.members)) {
    for (const json& file : said.at("files"))
      manifest.files.push_back({file.at("name"), file.at("bytes"), file.at("checksum")});
    manifest.rank_states.push_back(std::move(said.at("state")));
  }
  manifest.tensors =
      collect_tensors(paths.temporary, manifest.files, Kind::Model, snapshot.model, manifest.is_shared());
  for (StoredTensor& tensor :
       collect_tensors(paths.temporary, manifest.files, Kind::Optimizer, snapshot.optimizer, manifest.is_shared()))
    manifest.tensors.push_back(std::move(tensor));
  return manifest;
}

/// All that can run out of space comes before the two renames.
void Saver::put_in_place(const Manifest& manifest, const Paths& paths) {
  write_file(*disk_, paths.temporary / kManifestName, format_manifest(manifest));
  disk_->sync_folder(paths.temporary);
  write_file(*disk_, paths.pointer, paths.final.filename().string() + "\n");
  const Fence::Lock lock(options_.folder);
  fence_.check(owner_);
  disk_->swap_in(paths.temporary, paths.final);
  disk_->sync_folder(options_.folder);
  disk_->rename(paths.pointer, options_.folder / options_.naming.pointer());
  disk_->sync_folder(options_.folder);
}

/// Removes what is older than the newest `keep`. Checkpoints past `newest` are of a run that went further before this
/// one went back: a person decides about them. A folder without a manifest is none of ours.
void Saver::retain(int64_t newest) {
  if (options_.keep <= 0) return;
  std::vector<StepFolder> ours;
  for (const StepFolder& each : step_folders(options_.folder, options_.naming))
    if (each.step <= newest && fs::exists(each.path / kManifestName)) ours.push_back(each);
  for (size_t i = static_cast<size_t>(options_.keep); i < ours.size(); ++i) try {
      // First out of sight, so that a crash in the middle leaves no half of a checkpoint under its name.
      const fs::path removed = options_.folder / fmt::format(".{}.removed.tmp", ours[i].path.filename().string());
      disk_->rename(ours[i].path, removed);
      disk_->remove_all(removed);
    } catch (const std::exception& error) {
      spdlog::warn("{}: cannot remove this older checkpoint: {}", ours[i].path.string(), reason_of(error));
    }
}

void log_result(const SaveResult& result) {
  if (!result.saved)
    return spdlog::error(
        "Checkpoint of step {} was not saved; training goes on and older checkpoints are as they were: {}", result.step,
        result.reason);
  const double bytes_per_second = static_cast<double>(result.bytes) / std::max(result.seconds, 1e-9);
  spdlog::info("Saved checkpoint {} in {:.2f} s ({}, {}/s)", result.path.string(), result.seconds,
               human_bytes(result.bytes), human_bytes(static_cast<uint64_t>(bytes_per_second)));
}

}  // namespace trainyard::checkpoint
