#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trainyard::s3 {

/// An object, or all whose keys begin alike, of a bucket of Amazon S3 or of a server that speaks its protocol.
struct Name {
  std::string bucket;
  std::string key;  ///< "": the whole bucket

  bool operator==(const Name&) const = default;
};

inline constexpr std::string_view kScheme = "s3://";

/// Whether `text` is meant as a name of S3.
bool is_name(std::string_view text);

/// Reads "s3://bucket/key". Throws InputError, which says what is wrong, for what no server takes as one.
Name parse_name(std::string_view text);

/// "s3://bucket/key".
std::string to_string(const Name& name);

}  // namespace trainyard::s3
