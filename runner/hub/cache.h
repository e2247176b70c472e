#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "hub/files.h"
#include "hub/name.h"

namespace trainyard::hub {

/// Where a repository lies in the cache, as huggingface_hub has it, which finds there what this puts there:
///   models--org--name/blobs/<etag>                the bytes of a file
///   models--org--name/snapshots/<commit>/<file>   a link to its blob
///   models--org--name/refs/<revision>             the commit that it was when it was last looked up
///   .locks/models--org--name/<etag>.lock          held by whoever downloads that blob
class RepoCache {
 public:
  /// Touches nothing.
  RepoCache(const std::filesystem::path& cache, const Name& name);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] std::filesystem::path blob(const std::string& etag) const { return folder_ / "blobs" / etag; }
  [[nodiscard]] std::filesystem::path lock(const std::string& etag) const { return locks_ / (etag + ".lock"); }
  [[nodiscard]] std::filesystem::path snapshot(const std::string& commit) const;
  [[nodiscard]] std::filesystem::path ref(const std::string& revision) const { return folder_ / "refs" / revision; }

  /// What `revision` was when it was last looked up; a commit is itself. None where that is not known.
  [[nodiscard]] std::optional<std::string> commit_of(const std::string& revision) const;
  /// The files of a snapshot whose bytes are there.
  [[nodiscard]] FileNames files_of(const std::string& commit) const;

  /// What the repository has at `commit`, as the hub listed it when something of it was fetched from here; none where
  /// nothing was.
  [[nodiscard]] std::optional<FileNames> listing_of(const std::string& commit) const;

  /// Keeps that list, in .trainyard/<commit>. Throws std::filesystem::filesystem_error.
  void remember_listing(const std::string& commit, const FileNames& files) const;
  /// Writes refs/<revision>; nothing where `revision` is a commit. Throws std::filesystem::filesystem_error.
  void remember(const std::string& revision, const std::string& commit) const;
  /// Makes the link of `file` to its blob, which is there; another process may do the same.
  /// Throws std::filesystem::filesystem_error.
  void link(const std::string& commit, const std::string& file, const std::string& etag) const;

 private:
  std::filesystem::path folder_, locks_;
};

/// What the link of `file` in a snapshot holds: "../../blobs/<etag>", with one ".." more for each folder of `file`.
std::filesystem::path link_text(const std::string& file, const std::string& etag);

}  // namespace trainyard::hub
