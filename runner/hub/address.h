#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hub/name.h"

// Addresses, without asking anybody.
namespace trainyard::hub {

/// Where a file of a repository lies at `revision`.
std::string file_address(const std::string& endpoint, const Name& name, const std::string& revision,
                         std::string_view file);

/// Where the hub tells the commit and the files of name.revision.
std::string info_address(const std::string& endpoint, const Name& name);

/// "https://host:443", in lower case: whoever has the same is the same server. "" for what is no address of http or
/// https.
std::string origin_of(const std::string& address);

/// Where a redirect of `address` to `location` leads, which may be relative. None for what is no address of http or
/// https, and for one that would leave https for http.
std::optional<std::string> redirected(const std::string& address, const std::string& location);

}  // namespace trainyard::hub
