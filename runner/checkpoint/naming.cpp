#include "checkpoint/naming.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/manifest.h"

namespace trainyard::checkpoint {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kSteps = "steps", kLatest = "latest";
constexpr size_t kLongestName = 200;  // a file's name has 255 bytes at most

/// "qwen3" and 50 of "qwen3-50steps", "" and 50 of "step-50" and "step_50".
std::optional<std::pair<std::string, int64_t>> parse(std::string_view folder_name) {
  const auto named = [](std::string_view name, std::string_view digits) {
    const auto step = parse_int(digits);
    return step && *step >= 0 ? std::optional(std::pair(std::string(name), *step)) : std::nullopt;
  };
  if (folder_name.starts_with("step-") || folder_name.starts_with("step_")) {
    if (auto plain = named("", folder_name.substr(5))) return plain;
  }
  const size_t dash = folder_name.rfind('-');
  if (!folder_name.ends_with(kSteps) || dash == std::string_view::npos || dash == 0) return std::nullopt;
  const std::string_view digits = folder_name.substr(dash + 1, folder_name.size() - dash - 1 - kSteps.size());
  return named(folder_name.substr(0, dash), digits);
}

bool is_good_in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
}

}  // namespace

Naming::Naming(std::string name, Folders folders, std::string_view subject)
    : name_(std::move(name)), folders_(folders) {
  if (name_.empty() && folders_ == Folders::OfSteps) return;
  const bool is_plain = !name_.empty() && name_.size() <= kLongestName && std::ranges::all_of(name_, is_good_in_name) &&
                        std::isalnum(static_cast<unsigned char>(name_[0]));
  if (!is_plain)
    throw InputError(
        fmt::format("{} is '{}'; use letters, digits, '-', '_' and '.', the first a letter or digit, {} at most",
                    subject, name_, kLongestName));
  if (name_ == kLatest || name_.ends_with("-latest") || parse(name_))
    throw InputError(fmt::format("{} is '{}', which other checkpoints or their pointers are called; choose another",
                                 subject, name_));
}

std::string Naming::folder_of(int64_t step) const {
  if (folders_ == Folders::One) return name_;
  return name_.empty() ? fmt::format("step-{}", step) : fmt::format("{}-{}{}", name_, step, kSteps);
}

std::string Naming::pointer() const {
  return name_.empty() ? std::string(kLatest) : fmt::format("{}-{}", name_, kLatest);
}

std::string Naming::claim() const {
  return name_.empty() ? ".generation" : fmt::format(".{}.generation", name_);
}

bool Naming::has(std::string_view folder_name) const {
  if (folders_ == Folders::One) return folder_name == name_;
  const auto parsed = parse(folder_name);
  return parsed && parsed->first == name_;
}

std::optional<int64_t> Naming::step_of(const fs::path& folder) const {
  const std::string name = folder.filename().string();
  if (!has(name)) return std::nullopt;
  if (folders_ == Folders::OfSteps) return parse(name)->second;
  try {
    return read_manifest(folder).step;
  } catch (const InputError&) {
    return 0;
  }
}

bool Naming::may_remove(std::string_view name) const {
  const size_t end = std::min(name.find(".generation-"), name.find(".removed.tmp"));
  if (end == std::string_view::npos) return true;
  const std::string_view whose = name.substr(1, end - 1);
  return has(whose) || whose == pointer();
}

std::vector<Naming> namings_in(const fs::path& folder) {
  std::vector<Naming> found;
  std::error_code absent, vanished;
  for (const auto& entry : fs::directory_iterator(folder, absent)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') || !entry.is_directory(vanished)) continue;
    try {
      if (const auto parsed = parse(name))
        found.emplace_back(parsed->first);
      else if (fs::exists(entry.path() / kManifestName, vanished))
        found.emplace_back(name, Naming::Folders::One);
    } catch (const InputError&) {  // no name of ours
    }
  }
  std::ranges::sort(found, {}, &Naming::name);
  const auto again = std::ranges::unique(found);
  found.erase(again.begin(), again.end());
  return found;
}

Naming naming_in(const fs::path& folder) {
  const std::vector<Naming> found = namings_in(folder);
  if (found.empty() || found[0].name().empty()) return {};
  if (found.size() == 1) return found[0];
  std::vector<std::string> pointers;
  for (const Naming& each : found) pointers.push_back((folder / each.pointer()).string());
  throw InputError(fmt::format("{}: holds checkpoints of several names; name one of them, or {}", folder.string(),
                               fmt::join(pointers, " or ")));
}

}  // namespace trainyard::checkpoint
