#include "checkpoint/folder_group.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include "base/byte_io.h"
#include "base/error.h"
#include "base/files.h"
#include "base/links.h"
#include "base/text.h"

namespace trainyard::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::chrono::milliseconds kLookAgain{50};

/// Tells a folder of one machine from those of all others: the boot, the device and the inode.
std::string identity_of(const fs::path& folder) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) return {};
  std::string boot;
  try {
    boot = trim(read_file("/proc/sys/kernel/random/boot_id", 4096));
  } catch (const InputError&) {  // a container without /proc: device and inode must do
  }
  return fmt::format("{}:{}:{}", boot, info.st_dev, info.st_ino);
}

/// The name was never looked up here before, so no client of a network file system can have cached its absence.
bool appears(const fs::path& file, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::error_code ignored;
  while (!fs::exists(file, ignored)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(kLookAgain);
  }
  return true;
}

json look(const fs::path& folder, const fs::path& marker, std::chrono::milliseconds patience) {
  try {
    check_writable(folder);
    return {{"sees", appears(marker, patience)}, {"folder", identity_of(folder)}};
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

/// {"leaders": [the leader of each rank's folder, by rank]}
json group(const Agreement::Said& said) {
  if (const auto error = Agreement::first_error(said)) return {{"error", *error}};
  std::map<std::string, int> leaders;
  json leader_of = json::array();
  for (size_t rank = 0; rank < said.size(); ++rank) {
    const std::string folder =
        said[rank]->at("sees").get<bool>() ? "rank 0's" : said[rank]->at("folder").get<std::string>();
    leader_of.push_back(leaders.emplace(folder, static_cast<int>(rank)).first->second);
  }
  return {{"leaders", leader_of}};
}

void tell_about(const fs::path& folder, const std::vector<int>& leader_of) {
  const auto groups = std::ranges::count_if(leader_of, [rank = 0](int leader) mutable { return leader == rank++; });
  if (groups > 1)
    spdlog::warn(
        "{} is not shared between the hosts: each of {} keeps the checkpoints of its own ranks. To resume, the same "
        "ranks must find them again; a shared folder in checkpoint.dir lifts that",
        folder.string(), groups);
}

}  // namespace

void check_writable(const fs::path& folder) {
  const fs::path probe = folder / fmt::format(".probe-{}.tmp", random_name());
  try {
    fs::create_directories(folder);
    FileSink sink(probe);
    sink.write(std::string_view("x"));
    sink.finish();
    fs::remove(probe);
  } catch (const fs::filesystem_error& error) {
    std::error_code ignored;
    fs::remove(probe, ignored);
    if (const fs::path link = dangling_link(folder); !link.empty())
      throw InputError(
          fmt::format("checkpoint.dir: {} is a symbolic link to {}, which is not there; make that folder, or remove the "
                      "link",
                      link.string(), fs::read_symlink(link, ignored).string()));
    throw InputError(
        fmt::format("checkpoint.dir: {} cannot be written: {}; choose another folder, or checkpoint.enabled false",
                    folder.string(), error.code().message()));
  }
}

FolderGroup find_group(const fs::path& folder, Agreement& ranks, std::chrono::milliseconds patience) {
  const auto marker_of = [&](const std::string& name) { return folder / fmt::format(".shared-{}.tmp", name); };
  json say = json::object();
  if (ranks.rank() == 0) try {
      check_writable(folder);
      say["name"] = random_name();
      write_file_atomically(marker_of(say["name"]), "");
    } catch (const std::exception& error) {
      say["error"] = error.what();
    }
  const json begun = ranks.round_of_all("checkpoint.dir", say, [](const Agreement::Said& said) -> json {
    if (const auto error = Agreement::first_error(said)) return {{"error", *error}};
    return *said[0];
  });
  if (begun.contains("error")) throw VerdictError(begun.at("error"), ranks.rank() == 0);
  const fs::path marker = marker_of(begun.at("name"));
  const json found = ranks.round_of_all("checkpoint.dir", look(folder, marker, patience), group);
  if (ranks.rank() == 0) {
    std::error_code ignored;
    fs::remove(marker, ignored);
  }
  if (found.contains("error")) throw VerdictError(found.at("error"), ranks.rank() == 0);
  const auto leader_of = found.at("leaders").get<std::vector<int>>();
  if (ranks.rank() == 0) tell_about(folder, leader_of);
  FolderGroup mine;
  for (int rank = 0; rank < ranks.world(); ++rank)
    if (leader_of[static_cast<size_t>(rank)] == leader_of[static_cast<size_t>(ranks.rank())])
      mine.members.push_back(rank);
  return mine;
}

std::string random_name() {
  std::random_device random;
  return fmt::format("{:08x}", random());
}

}  // namespace trainyard::checkpoint
