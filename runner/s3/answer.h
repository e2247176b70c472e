#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "s3/name.h"
#include "s3/settings.h"
#include "web/answer.h"

// What a server of S3 answers, and what is to be done with it. Pure.
namespace trainyard::s3 {

/// An object, as it is listed.
struct Object {
  std::string key;
  uint64_t size = 0;  ///< bytes
  std::string etag;   ///< with its quotes; another one where the object was written again
};

/// What a HEAD of an object says of it.
struct Facts {
  uint64_t size = 0;
  std::string etag;  ///< with its quotes
  std::map<std::string, std::string>
      checksums;    ///< of the whole object, in base64: "crc32", "crc32c", "crc64nvme", "sha256"
  std::string md5;  ///< in hexadecimal digits, where the etag is that; else ""
};

/// Throws InputError, beginning with `what`, for an answer without a size or an ETag.
Facts facts_of(const web::Answer& answer, const std::string& what);

/// The <Error> of an answer that is not good.
struct Told {
  std::string code, message, region;  ///< "" where it does not say
};
Told told_by(const web::Answer& answer);

/// One page of a list.
struct Page {
  std::vector<Object> objects;
  std::string next;  ///< the token of the next page; "": there is none
};

/// Throws InputError, beginning with `what`, for what is no ListBucketResult.
Page page_of(const std::string& text, const std::string& what);

/// Whether the same request may succeed a moment later.
bool may_pass(const web::Answer& answer, const Told& told);

/// The server knows the credentials no longer, and others may do.
bool has_expired(const Told& told);

/// No connection was made.
class UnreachableError : public InputError {
  using InputError::InputError;
};

/// The error that an answer which is not good stands for: InputError where the user can mend it (no such bucket or
/// object, a wrong region or wrong credentials, access denied), PeerError where a network or a server was lost.
/// `what` is what was asked for: "s3://bucket/key". `source` says whose credentials they were.
[[noreturn]] void refuse(const web::Answer& answer, const std::string& what, const std::string& source,
                         const Settings& settings);

}  // namespace trainyard::s3
