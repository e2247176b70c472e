#pragma once

#include <filesystem>
#include <string>

#include "hub/client.h"

namespace trainyard::hub {

/// A file of a repository, as it is asked for.
struct Wanted {
  const Name& name;
  const std::string& commit;
  const std::string& file;
  const FileFacts& facts;
};

/// Where its bytes go: to `incomplete` until all are there and are right, then to `complete`, on the same file system.
struct Target {
  std::filesystem::path complete, incomplete;
};

/// Downloads a file whose lock the caller holds, and goes on from what `incomplete` already has. A connection that is
/// cut is made again, as long as each time something comes. The bytes are compared with the size and the sha256 that
/// the hub told; wrong ones are deleted. Throws as refuse() says, and InputError for wrong bytes and where the disk has
/// no room.
void download(Client& client, const Wanted& wanted, const Target& target);

/// The sha256 of a file, in hexadecimal digits. Throws InputError where it cannot be read.
std::string sha256_of(const std::filesystem::path& path);

}  // namespace trainyard::hub
