#include "data/corpus_files.h"

#include <fmt/format.h>
#include <glob.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <new>
#include <set>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/lowercase.h"
#include "data/columns/open_column.h"
#include "data/saved_dataset.h"
#include "data/unpacking.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;

/// Whether the file has this ending, packed or not.
bool has_ending(const fs::path& path, const std::string& plain) {
  const std::string ending = ending_of(path);
  return ending == plain || ending == plain + ".gz" || ending == plain + ".zst";
}
bool is_corpus_file(const fs::path& path) {
  return ending_of(path) == ".txt" || has_ending(path, ".jsonl");
}
/// Whether it is a table, and none that `datasets` keeps beside a data set as what map() and filter() made of it.
bool is_corpus_table(const fs::path& path) {
  return is_table(path) && !path.filename().string().starts_with("cache-");
}
bool is_hidden(const fs::path& name) {
  return name.string().starts_with('.');
}
using IsWanted = bool (*)(const fs::path&);

[[noreturn]] void fail(const fs::path& path, const std::error_code& error) {
  throw InputError(fmt::format("{}: {}", path.string(), error.message()));
}

[[noreturn]] void fail_dangling(const fs::path& link) {
  throw InputError(fmt::format("{}: this link leads to nothing ({}); mend it or take it away", link.string(),
                               fs::read_symlink(link).string()));
}

/// The names in `folder` that are not hidden, in order.
std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    if (!is_hidden(entry->path().filename())) entries.push_back(*entry);
  if (error) fail(folder, error);
  std::ranges::sort(entries, {}, [](const fs::directory_entry& entry) { return entry.path(); });
  return entries;
}

/// All that lies below a folder, behind links too.
class Walk {
 public:
  explicit Walk(const fs::path& root) : root_(root), real_root_(fs::canonical(root)) { visit_folder(root, real_root_); }

  /// Those that are wanted, each once, in the order of their names.
  [[nodiscard]] std::vector<fs::path> files(IsWanted is_wanted) const {
    for (const fs::path& link : dangling_)
      if (is_wanted(link)) fail_dangling(link);
    std::map<fs::path, fs::path> by_place;
    for (const auto& [name, place] : found_)
      if (is_wanted(name)) by_place.try_emplace(place, name_here(place, name, is_wanted));
    std::vector<fs::path> files;
    for (const auto& [place, name] : by_place) files.push_back(name);
    std::ranges::sort(files);
    return files;
  }

  /// "2 .json, 1 without an ending and 1 link to nothing"; "" where all is wanted.
  [[nodiscard]] std::string passed_over(IsWanted is_wanted) const {
    std::set<fs::path> read, rest;
    for (const auto& [name, place] : found_)
      if (is_wanted(name)) read.insert(place);
    std::map<std::string, int> counts;
    for (const auto& [name, place] : found_) {
      if (read.contains(place) || !rest.insert(place).second) continue;
      const std::string ending = ending_of(name);
      ++counts[ending.empty() ? "without an ending" : ending];
    }
    std::vector<std::string> parts;
    for (const auto& [ending, count] : counts) parts.push_back(fmt::format("{} {}", count, ending));
    if (const size_t links = dangling_.size(); links > 0)
      parts.push_back(links == 1 ? "1 link to nothing" : fmt::format("{} links to nothing", links));
    std::string text;
    for (size_t i = 0; i < parts.size(); ++i)
      text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
    return text;
  }

 private:
  struct Found {
    fs::path name, place;  ///< as it was come upon; without a link in it
  };

  /// `place`: of the folder, without a link in it. A folder that has been visited has nothing new.
  void visit_folder(const fs::path& folder, const fs::path& place) {
    if (!visited_.insert(place).second) return;
    above_.insert(place);
    for (const fs::directory_entry& entry : entries_of(folder)) visit(entry, place / entry.path().filename());
    above_.erase(place);
  }

  void visit(const fs::directory_entry& entry, fs::path place) {
    std::error_code error;
    if (entry.is_symlink(error)) {
      place = fs::canonical(entry.path(), error);
      if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory)
        return dangling_.push_back(entry.path());
    }
    const bool is_folder = !error && entry.is_directory(error);
    if (error == std::errc::too_many_symbolic_link_levels || (is_folder && above_.contains(place)))
      throw InputError(fmt::format("{}: a link on this path leads round in a circle; take it away", entry.path().string()));
    if (error) fail(entry.path(), error);
    is_folder ? visit_folder(entry.path(), place) : found_.push_back({entry.path(), std::move(place)});
  }

  /// The name of what lies at `place`: the place's own, below the root, rather than that of a link to it, so that a
  /// link to a part of a corpus changes nothing in it.
  [[nodiscard]] fs::path name_here(const fs::path& place, const fs::path& found, IsWanted is_wanted) const {
    const fs::path below = place.lexically_relative(real_root_);
    const bool is_here = !below.empty() && std::none_of(below.begin(), below.end(), is_hidden);  // ".." is hidden, too
    return is_here && is_wanted(place) ? root_ / below : found;
  }

  fs::path root_, real_root_;
  std::vector<Found> found_;
  std::vector<fs::path> dangling_;
  std::set<fs::path> visited_;  ///< folders, by their places
  std::set<fs::path> above_;    ///< of these, the ones that the walk is in
};

void log_passed_over(const fs::path& folder, const std::string& passed_over, const char* read) {
  if (!passed_over.empty())
    spdlog::info("{}: passed over {}; of a folder the {} files are read", folder.string(), passed_over, read);
}

std::vector<fs::path> files_below(const fs::path& folder, Notes notes) {
  const Walk walk(folder);
  const bool is_logged = notes == Notes::Logged;
  std::vector<fs::path> files = walk.files(is_corpus_file);
  if (!files.empty()) {
    if (is_logged) log_passed_over(folder, walk.passed_over(is_corpus_file), ".txt and .jsonl");
    return files;
  }
  if (auto saved = saved_dataset_files(folder)) return *saved;  // whose .json files hold no text
  files = walk.files(is_corpus_table);
  if (!files.empty()) {
    require_one_split(files, folder);
    if (is_logged) log_passed_over(folder, walk.passed_over(is_corpus_table), ".parquet and .arrow");
    return files;
  }
  files = walk.files(is_json);  // beside others they may be anything
  const std::string rest = walk.passed_over(is_json);
  if (files.empty())
    throw InputError(fmt::format("{}: no .txt, .jsonl, .parquet, .arrow or .json file below this folder{}",
                                 folder.string(), rest.empty() ? "" : ", which has " + rest));
  if (is_logged) log_passed_over(folder, rest, ".json");
  return files;
}

bool is_pattern(const std::string& text) {
  return text.find_first_of("*?[") != std::string::npos;
}

/// The paths that a pattern matches, in order.
std::vector<fs::path> matches_of(const std::string& pattern) {
  struct Matches : glob_t {
    Matches() : glob_t{} {}
    Matches(const Matches&) = delete;
    Matches& operator=(const Matches&) = delete;
    ~Matches() { globfree(this); }
  } found;
  const int result = ::glob(pattern.c_str(), 0, nullptr, &found);
  if (result == GLOB_NOSPACE) throw std::bad_alloc();
  std::vector<fs::path> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  std::ranges::sort(paths);
  return paths;
}

std::vector<fs::path> files_of_pattern(const std::string& pattern, Notes notes) {
  if (pattern.find("**") != std::string::npos)
    throw InputError(fmt::format("{}: '**' is no pattern here; give the folder, which is read to any depth", pattern));
  std::vector<fs::path> files;
  for (const fs::path& match : matches_of(pattern))
    for (fs::path& file : corpus_files(match, notes)) files.push_back(std::move(file));
  if (files.empty()) throw InputError(fmt::format("{}: no file matches this pattern", pattern));
  return files;
}

}  // namespace

std::string ending_of(const fs::path& path) {
  const std::string last = lowercase(path.extension().string());
  return is_packed(path) ? lowercase(path.stem().extension().string()) + last : last;
}

// Hugging Face's data sets and torchtitan's c4_test name them so.
bool is_json(const fs::path& path) {
  return has_ending(path, ".json");
}

DocumentIs document_in(const fs::path& path) {
  if (is_table(path)) return DocumentIs::Row;
  return ending_of(path) == ".txt" ? DocumentIs::File : DocumentIs::Line;
}

bool is_there(const fs::path& path) {
  return fs::exists(path) || (is_pattern(path.string()) && !matches_of(path.string()).empty());
}

fs::path folder_of(const fs::path& path) {
  if (fs::is_directory(path)) return path;
  fs::path folder = fs::absolute(path).parent_path();
  while (is_pattern(folder.string()) && !fs::exists(folder)) folder = folder.parent_path();
  return folder;
}

std::vector<fs::path> corpus_files(const fs::path& path, Notes notes) {
  std::error_code error;
  const bool is_there = fs::exists(path, error);
  if (error) fail(path, error);
  if (!is_there && is_pattern(path.string())) return files_of_pattern(path.string(), notes);
  if (!is_there) throw InputError(fmt::format("{}: no such file or folder", path.string()));
  if (fs::is_directory(path)) return files_below(path, notes);
  if (ending_of(path).starts_with(".txt."))
    throw InputError(fmt::format("{}: a .txt file is one document and is read unpacked; unpack it, or make .jsonl of it",
                                 path.string()));
  if (!is_corpus_file(path) && !is_json(path) && !is_table(path))
    throw InputError(
        fmt::format("{}: a corpus is a .txt file, a .jsonl file (or .json; these packed as .gz or .zst, too), "
                    "a .parquet or an .arrow file, or a folder of them",
                    path.string()));
  return {path};
}

}  // namespace trainyard::data
