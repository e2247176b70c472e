#pragma once

#include <map>
#include <string>
#include <string_view>

namespace trainyard::s3 {

using Environment = std::map<std::string, std::string, std::less<>>;

/// Settings of a section; what is indented below "s3 =" has the name "s3.addressing_style".
using Section = std::map<std::string, std::string, std::less<>>;

/// The value of a variable, or of a setting; "" where it is not given.
std::string value_of(const std::map<std::string, std::string, std::less<>>& values, std::string_view name);

/// Sections of ~/.aws/config or ~/.aws/credentials, by the words between their brackets. A later line wins. Throws
/// InputError, naming `where` and the line but nothing of what it holds, for a line that is none.
std::map<std::string, Section, std::less<>> parse_sections(std::string_view text, const std::string& where);

/// What the two files hold for one profile.
struct Profile {
  std::string name;      ///< AWS_PROFILE, else "default"
  Section settings;      ///< of both; where both have one, that of the credentials file
  Section for_services;  ///< of the section [services NAME] that it names
};

/// Reads AWS_CONFIG_FILE (~/.aws/config) and AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials), where they are there.
/// Throws InputError for a profile that AWS_PROFILE names and neither has.
Profile read_profile(const Environment& environment);

}  // namespace trainyard::s3
