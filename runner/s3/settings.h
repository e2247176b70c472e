#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "s3/name.h"
#include "s3/profile.h"

namespace trainyard::s3 {

/// How a server of S3 is asked, as the AWS SDKs read it from the environment and from ~/.aws.
struct Settings {
  std::string region = "us-east-1";  ///< AWS_REGION, AWS_DEFAULT_REGION, region of the profile
  std::string endpoint;              ///< without a slash at its end; "": Amazon's for the region
  std::string sts_endpoint;          ///< of AssumeRoleWithWebIdentity
  bool is_path_style = false;        ///< https://host/bucket/key, else https://bucket.host/key
  std::string authorities;           ///< AWS_CA_BUNDLE; "": the system's
  int attempts = 8;                  ///< AWS_MAX_ATTEMPTS, of one request
  std::filesystem::path cache;       ///< where objects are kept that were downloaded
  std::chrono::milliseconds connect{10000}, silence{30000};
  Environment environment;  ///< for credentials
  Profile profile;          ///< likewise
};

/// Throws InputError, naming the variable or the setting, for one whose value does not fit, or that is not supported.
Settings settings_of(const Environment& environment);

/// The server that is asked for things of a bucket: "https://bucket.s3.eu-west-1.amazonaws.com".
std::string server_of(const Settings& settings, const std::string& bucket);

/// What is asked of that server for a key ("": for the bucket), percent-encoded: "/bucket/key" or "/key".
std::string path_of(const Settings& settings, const Name& name);

}  // namespace trainyard::s3
