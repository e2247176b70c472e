#include "hub/fetch.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "hub/blob.h"
#include "hub/cache.h"
#include "hub/client.h"
#include "web/file_lock.h"

namespace trainyard::hub {
namespace fs = std::filesystem;
namespace {

using web::size_on_disk;

constexpr std::chrono::minutes kLockPatience{10};

/// What the cache lacks of a commit; "": nothing. Of what others fetched it is not known what more there was.
std::string missing_of(const RepoCache& cache, const std::string& commit, const Choice& choice) {
  const FileNames there = cache.files_of(commit);
  if (there.empty()) return "files";
  const FileNames listing = cache.listing_of(commit).value_or(there);
  if (std::string lacking = choice.lacking(listing); !lacking.empty()) return lacking;
  for (const std::string& file : choice.chosen(listing))
    if (!std::ranges::binary_search(there, file)) return file;
  return "";
}

/// What the cache has of name.revision, where that is all that is needed.
std::optional<Fetched> cached(const RepoCache& cache, const Name& name, const Choice& choice) {
  const auto commit = cache.commit_of(name.revision);
  if (!commit || !missing_of(cache, *commit, choice).empty()) return std::nullopt;
  const FileNames there = cache.files_of(*commit);
  return Fetched{.folder = cache.snapshot(*commit), .commit = *commit, .files = choice.chosen(there).size()};
}

[[noreturn]] void refuse_offline(const RepoCache& cache, const Name& name, const Choice& choice) {
  const auto commit = cache.commit_of(name.revision);
  const std::string begin = fmt::format("{}: HF_HUB_OFFLINE is set, so the hub is not asked, and ", to_string(name));
  if (!commit) throw InputError(fmt::format("{}{} does not know this revision", begin, cache.folder().string()));
  throw InputError(
      fmt::format("{}{} has no {}", begin, cache.snapshot(*commit).string(), missing_of(cache, *commit, choice)));
}

Repository look_up(Client& client, const Name& name, const Choice& choice) {
  Repository repository = client.look_up(name);
  if (const std::string lacking = choice.lacking(repository.files); !lacking.empty())
    throw InputError(fmt::format("{}: the repository has no {}", to_string(name), lacking));
  return repository;
}

void log_start(const Name& name, const std::string& file, const FileFacts& facts) {
  spdlog::info("{}: downloading {}{}", to_string(name), file, facts.size ? ", " + human_bytes(*facts.size) : "");
}

/// One file into the cache.
void fetch_file(Client& client, const RepoCache& cache, const Name& name, const std::string& commit,
                const std::string& file, Fetched& fetched) {
  if (fs::exists(cache.snapshot(commit) / file)) return;
  const FileFacts facts = client.facts(name, commit, file);
  if (facts.commit != commit)
    throw InputError(fmt::format("{}: {} was asked for at commit {}, and the answer is of {}", to_string(name), file,
                                 commit, facts.commit));
  const fs::path blob = cache.blob(facts.etag), incomplete = blob.string() + ".incomplete";
  fs::create_directories(blob.parent_path());
  const web::FileLock lock(cache.lock(facts.etag), kLockPatience, [&] { return size_on_disk(incomplete); });
  if (!fs::exists(blob)) {
    log_start(name, file, facts);
    download(client, {name, commit, file, facts}, {.complete = blob, .incomplete = incomplete});
    fetched.bytes += size_on_disk(blob);
    ++fetched.downloaded;
  }
  cache.link(commit, file, facts.etag);
}

/// A cache may be mounted read-only, with all that is wanted in it.
void if_it_can_be_written(const std::function<void()>& write) {
  try {
    write();
  } catch (const fs::filesystem_error& error) {
    spdlog::debug("the hub's cache is left as it is: {}", error.what());
  }
}

Fetched fetch_all(Client& client, const RepoCache& cache, const Name& name, const Repository& repository,
                  const Choice& choice) {
  const FileNames files = choice.chosen(repository.files);
  if_it_can_be_written([&] { cache.remember_listing(repository.commit, repository.files); });
  Fetched fetched{.folder = cache.snapshot(repository.commit), .commit = repository.commit, .files = files.size()};
  for (const std::string& file : files) fetch_file(client, cache, name, repository.commit, file, fetched);
  if_it_can_be_written([&] { cache.remember(name.revision, repository.commit); });
  return fetched;
}

/// huggingface_hub's record of a file in a plain folder: commit, etag, time.
struct Record {
  fs::path metadata, incomplete, lock;
  Record(const fs::path& folder, const std::string& file) {
    const std::string base = (folder / ".cache" / "huggingface" / "download" / file).string();
    metadata = base + ".metadata", incomplete = base + ".incomplete", lock = base + ".lock";
  }

  /// The etag that was written down; "" where none was.
  [[nodiscard]] std::string etag() const {
    std::error_code error;
    if (!fs::is_regular_file(metadata, error)) return "";
    const auto lines = split(read_file(metadata, 4096), '\n');
    return lines.size() > 1 ? lines[1] : "";
  }

  void write(const FileFacts& facts) const {
    const auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    write_file_atomically(metadata, fmt::format("{}\n{}\n{:.6f}\n", facts.commit, facts.etag, now));
  }
};

void fetch_file_into(Client& client, const fs::path& folder, const Name& name, const std::string& commit,
                     const std::string& file, Fetched& fetched) {
  const Record record(folder, file);
  const fs::path target = folder / file;
  fs::create_directories(record.metadata.parent_path());
  fs::create_directories(target.parent_path());
  const web::FileLock lock(record.lock, kLockPatience, [&] { return size_on_disk(record.incomplete); });
  const FileFacts facts = client.facts(name, commit, file);
  if (fs::exists(target) && record.etag() == facts.etag) return;
  log_start(name, file, facts);
  download(client, {name, commit, file, facts}, {.complete = target, .incomplete = record.incomplete});
  record.write(facts);
  fetched.bytes += size_on_disk(target);
  ++fetched.downloaded;
}

}  // namespace

Choice choice_of(Need need) {
  return {.chosen = [need](const FileNames& there) { return needed(need, there); },
          .lacking = [need](const FileNames& there) { return lacking(need, there); }};
}

Fetched fetch(const Name& name, const Choice& choice, const Settings& settings) {
  const RepoCache cache(settings.cache, name);
  if (settings.is_offline || (is_commit(name.revision) && cache.listing_of(name.revision)))
    if (const auto there = cached(cache, name, choice)) return *there;
  if (settings.is_offline) refuse_offline(cache, name, choice);
  Client client(settings);
  Repository repository;
  const auto do_without = [&](const std::exception& error) {
    const auto there = cached(cache, name, choice);
    if (!there) throw;  // what the caller has caught
    spdlog::warn("{}; going on with commit {} of the cache", error.what(), there->commit);
    return *there;
  };
  try {
    repository = look_up(client, name, choice);
  } catch (const UnreachableError& error) {
    return do_without(error);
  } catch (const PeerError& error) {
    return do_without(error);
  }
  return fetch_all(client, cache, name, repository, choice);
}

Fetched fetch_into(const fs::path& folder, const Name& name, const Choice& choice, const Settings& settings) {
  if (settings.is_offline)
    throw InputError(
        fmt::format("{}: HF_HUB_OFFLINE is set, so nothing can be downloaded to {}", to_string(name), folder.string()));
  Client client(settings);
  const Repository repository = look_up(client, name, choice);
  const FileNames files = choice.chosen(repository.files);
  Fetched fetched{.folder = folder, .commit = repository.commit, .files = files.size()};
  for (const std::string& file : files) fetch_file_into(client, folder, name, repository.commit, file, fetched);
  return fetched;
}

}  // namespace trainyard::hub
