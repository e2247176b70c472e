#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trainyard::hub {

enum class RepoKind { Model, Dataset };

/// A repository of the Hugging Face hub, at a revision.
struct Name {
  std::string repo;               ///< "org/name"
  std::string revision = "main";  ///< a branch, a tag, or a commit
  RepoKind kind = RepoKind::Model;

  bool operator==(const Name&) const = default;
};

/// Reads "org/name" or "org/name@revision"; none for what the hub would not take as a name, and for what ends as a file
/// of ours does ("data/corpus.txt"). That such a name is legal does not say that it exists.
std::optional<Name> parse_name(std::string_view text, RepoKind kind = RepoKind::Model);

/// "org/name", with "@revision" where that is not main.
std::string to_string(const Name& name);

/// Whether `revision` is a whole commit: 40 lower-case hexadecimal digits. What it names never changes.
bool is_commit(std::string_view revision);

/// Whether `revision` may stand in an address and below refs/ of the cache.
bool is_revision(std::string_view revision);

/// What a name is made of, for messages.
inline constexpr const char* kNameRule =
    "a name on the hub is org/name or org/name@revision: letters, digits, '-', '_' and '.', none of '-' and '.' at an "
    "end or doubled";

}  // namespace trainyard::hub
