#pragma once

#include <filesystem>
#include <string>

#include "hub/client.h"
#include "web/download.h"

namespace trainyard::hub {

/// A file of a repository, as it is asked for.
struct Wanted {
  const Name& name;
  const std::string& commit;
  const std::string& file;
  const FileFacts& facts;
};

/// Downloads a file whose lock the caller holds, as web::download does. The bytes are compared with the sha256 that the
/// hub told. Throws as refuse() says, and InputError for wrong bytes and where the disk has no room.
void download(Client& client, const Wanted& wanted, const web::Target& target);

/// The sha256 of a file, in hexadecimal digits. Throws InputError where it cannot be read.
std::string sha256_of(const std::filesystem::path& path);

}  // namespace trainyard::hub
