#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "s3/client.h"
#include "s3/name.h"

namespace trainyard::s3 {

/// Names of objects behind a prefix, with '/' between folders.
using FileNames = std::vector<std::string>;

/// What is asked for: an object, a prefix (as a folder), or a pattern of objects of one folder.
struct Wanted {
  Name name;
  std::string version;  ///< it must be this one (Fetched::version); "": whatever is there now
  /// Those of a folder that are wanted. Throws InputError where they are not enough.
  std::function<FileNames(const FileNames& there)> chosen = [](const FileNames& there) { return there; };
};

/// What is on the disk now.
struct Fetched {
  std::filesystem::path path;  ///< a file, a folder, or a pattern
  std::string version;         ///< of names, sizes and ETags of all that is wanted: 32 hexadecimal digits
  size_t files = 0;            ///< that are wanted
  size_t downloaded = 0;       ///< of them, as they were not there
  uint64_t bytes = 0;          ///< of those
};

/// Puts what is wanted into settings.cache, if it is not there already:
///   HOST/BUCKET/blobs/<digest>              the bytes of an object at an ETag
///   HOST/BUCKET/snapshots/<version>/<name>  a link to them
/// A version that is known to be there is not asked for. Objects are read as long as they are those that were listed,
/// and held against what the server tells of their bytes: a CRC, a SHA-256, or an MD5. Any number of processes may do
/// the same at once: each object is downloaded by the one that has its lock. Throws as refuse() says, InputError where
/// there is nothing, where objects cannot be files, and where the disk has no room, and PeerError.
Fetched fetch(Client& client, const Wanted& wanted);

/// What a name with a version is written as, "s3://bucket/key#<version>", and what it is read as.
std::string with_version(const Name& name, const std::string& version);
Wanted parse_wanted(const std::string& text);

/// What of the file is not as `facts` tell: "its CRC-32C is …"; "": nothing, or nothing was told.
std::string difference(const Facts& facts, const std::filesystem::path& file);

}  // namespace trainyard::s3
