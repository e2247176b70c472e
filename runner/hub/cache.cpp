#include "hub/cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/files.h"
#include "base/safe_name.h"
#include "base/text.h"

namespace trainyard::hub {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostRefBytes = 256;
constexpr const char* kListings = ".trainyard";  // huggingface_hub looks at blobs, refs and snapshots alone

std::string folder_name(const Name& name) {
  return (name.kind == RepoKind::Dataset ? "datasets--" : "models--") + replaced(name.repo, "/", "--");
}

}  // namespace

RepoCache::RepoCache(const fs::path& cache, const Name& name)
    : folder_(cache / folder_name(name)), locks_(cache / ".locks" / folder_name(name)) {}

fs::path RepoCache::snapshot(const std::string& commit) const {
  return folder_ / "snapshots" / commit;
}

std::optional<std::string> RepoCache::commit_of(const std::string& revision) const {
  if (is_commit(revision)) return revision;
  std::error_code error;
  if (!fs::is_regular_file(ref(revision), error)) return std::nullopt;
  const std::string text(trim(read_file(ref(revision), kMostRefBytes)));
  return is_commit(text) ? std::optional(text) : std::nullopt;
}

FileNames RepoCache::files_of(const std::string& commit) const {
  const fs::path top = snapshot(commit);
  FileNames files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(top, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code of_entry;
    if (entry->is_regular_file(of_entry)) files.push_back(entry->path().lexically_relative(top).generic_string());
  }
  std::ranges::sort(files);
  return files;
}

std::optional<FileNames> RepoCache::listing_of(const std::string& commit) const {
  std::error_code error;
  const fs::path file = folder_ / kListings / commit;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  FileNames files;
  for (std::string& name : split(read_file(file), '\n'))
    if (is_safe(name)) files.push_back(std::move(name));
  return files;
}

void RepoCache::remember_listing(const std::string& commit, const FileNames& files) const {
  fs::create_directories(folder_ / kListings);
  write_file_atomically(folder_ / kListings / commit, fmt::format("{}\n", fmt::join(files, "\n")));
}

void RepoCache::remember(const std::string& revision, const std::string& commit) const {
  if (is_commit(revision) || commit_of(revision) == commit) return;
  fs::create_directories(ref(revision).parent_path());
  write_file_atomically(ref(revision), commit);
}

void RepoCache::link(const std::string& commit, const std::string& file, const std::string& etag) const {
  const fs::path link = snapshot(commit) / file;
  fs::create_directories(link.parent_path());
  std::error_code error;
  fs::create_symlink(link_text(file, etag), link, error);
  if (error != std::errc::file_exists) {
    if (error) throw fs::filesystem_error("cannot make a link of the cache", link, error);
    return;
  }
  if (fs::exists(link)) return;
  fs::remove(link);  // it led to a blob that somebody deleted
  fs::create_symlink(link_text(file, etag), link);
}

fs::path link_text(const std::string& file, const std::string& etag) {
  fs::path text = "../..";
  for (const char c : file)
    if (c == '/') text /= "..";
  return text / "blobs" / etag;
}

}  // namespace trainyard::hub
