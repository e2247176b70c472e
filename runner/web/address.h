#pragma once

#include <optional>
#include <string>
#include <string_view>

// Addresses, without asking anybody.
namespace trainyard::web {

/// `text` with %XX for all but letters, digits, "-_.~" and `kept`, as Python's quote() and RFC 3986 have it.
std::string percent_encoded(std::string_view text, std::string_view kept = "");

/// "https://host:443", in lower case: whoever has the same is the same server. "" for what is no address of http or
/// https.
std::string origin_of(const std::string& address);

/// Where a redirect of `address` to `location` leads, which may be relative. None for what is no address of http or
/// https, and for one that would leave https for http.
std::optional<std::string> redirected(const std::string& address, const std::string& location);

}  // namespace trainyard::web
