#pragma once

#include <string>
#include <string_view>

#include "hub/name.h"

// Addresses of the hub, without asking it.
namespace trainyard::hub {

/// Where a file of a repository lies at `revision`.
std::string file_address(const std::string& endpoint, const Name& name, const std::string& revision,
                         std::string_view file);

/// Where the hub tells the commit and the files of name.revision.
std::string info_address(const std::string& endpoint, const Name& name);

}  // namespace trainyard::hub
