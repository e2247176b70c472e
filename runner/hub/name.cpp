#include "hub/name.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace trainyard::hub {
namespace {

constexpr size_t kMostNameBytes = 96, kMostRevisionBytes = 200;  // the first is the hub's

constexpr std::array<std::string_view, 14> kFileEndings{".arrow", ".bin", ".csv",     ".json", ".jsonl",
                                                        ".model", ".npy", ".parquet", ".pt",   ".safetensors",
                                                        ".toml",  ".txt", ".yaml",    ".yml"};

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_name_part(std::string_view part) {
  const auto fits = [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; };
  const auto may_end = [](char c) { return c != '-' && c != '.'; };
  return !part.empty() && std::ranges::all_of(part, fits) && may_end(part.front()) && may_end(part.back());
}

bool is_repo(std::string_view text) {
  const size_t slash = text.find('/');
  const auto has = [&](std::string_view what) { return text.find(what) != std::string_view::npos; };
  const auto ends = [&](std::string_view ending) { return text.ends_with(ending); };
  return slash != std::string_view::npos && text.size() <= kMostNameBytes && is_name_part(text.substr(0, slash)) &&
         is_name_part(text.substr(slash + 1)) && !has("--") && !has("..") && !ends(".git") &&
         std::ranges::none_of(kFileEndings, ends);
}

}  // namespace

std::optional<Name> parse_name(std::string_view text, RepoKind kind) {
  const size_t at = text.find('@');
  const std::string_view repo = text.substr(0, at);
  if (!is_repo(repo)) return std::nullopt;
  Name name{.repo = std::string(repo), .kind = kind};
  if (at == std::string_view::npos) return name;
  name.revision = text.substr(at + 1);
  return is_revision(name.revision) ? std::optional(name) : std::nullopt;
}

std::string to_string(const Name& name) {
  return name.revision == "main" ? name.repo : name.repo + "@" + name.revision;
}

bool is_commit(std::string_view revision) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return revision.size() == 40 && std::ranges::all_of(revision, is_digit);
}

bool is_revision(std::string_view revision) {
  if (revision.empty() || revision.size() > kMostRevisionBytes) return false;
  const auto fits = [](char c) {
    return is_letter_or_digit(c) || std::string_view("-_.+/").find(c) != std::string_view::npos;
  };
  const auto is_part = [](const std::string& part) { return !part.empty() && part[0] != '.' && part[0] != '-'; };
  return std::ranges::all_of(revision, fits) && revision.find("..") == std::string_view::npos &&
         std::ranges::all_of(split(revision, '/'), is_part);
}

}  // namespace trainyard::hub
