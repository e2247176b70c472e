#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "common/mutex.h"
#include "s3/settings.h"

namespace trainyard::s3 {

using TimePoint = std::chrono::system_clock::time_point;

/// Secrets but for `source`: never printed, logged or saved.
struct Credentials {
  std::string access_key, secret_key, session_token;
  std::optional<TimePoint> expires;
  std::string
      source;  ///< for messages: "AWS_ACCESS_KEY_ID", "the profile 'default'", "the role of the instance (IMDS)"
};

/// Who asks, by the first of these that is given, in the order of the AWS SDKs:
///   AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN
///   AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, by STS (IRSA); the same of the profile
///   keys of the profile, in ~/.aws/credentials or ~/.aws/config
///   AWS_CONTAINER_CREDENTIALS_FULL_URI (EKS Pod Identity) or _RELATIVE_URI (ECS)
///   the role of the instance, by IMDSv2, if AWS_EC2_METADATA_DISABLED is not true
/// Those that expire are asked for again five minutes before they do. Threads may call at once.
class CredentialChain {
 public:
  /// `settings` outlives it.
  explicit CredentialChain(const Settings& settings) : settings_(settings) {}

  /// Throws InputError, naming what was looked for, where there are none, or what was given does not fit, and PeerError
  /// where whoever gives them was lost.
  Credentials get() EXCLUDES(mutex_);

  /// The server knows `old` no longer: what is given next is asked for anew, where that can be done.
  void forget(const Credentials& old) EXCLUDES(mutex_);

 private:
  const Settings& settings_;
  Mutex mutex_;
  std::optional<Credentials> known_ GUARDED_BY(mutex_);
  TimePoint refresh_at_ GUARDED_BY(mutex_){};
};

/// The credentials in the JSON of a container's agent or of IMDS. Throws InputError, beginning with `where`, where it
/// is none.
Credentials credentials_in_json(const std::string& text, const std::string& where);

/// Those in the XML with which STS answers AssumeRoleWithWebIdentity. Throws the same.
Credentials credentials_in_xml(const std::string& text, const std::string& where);

/// "2026-01-31T12:00:00Z", with or without a fraction of the second; none for anything else.
std::optional<TimePoint> parse_time(const std::string& text);

/// Whether a container's agent may be asked at this address: over https, or on this machine or its link. A token goes
/// there.
bool is_container_agent(const std::string& address);

}  // namespace trainyard::s3
