#pragma once

#include <string>
#include <string_view>

// What `trainyard train --demo` trains: linked into the program, so that it runs anywhere without a file.
namespace trainyard::train::demo {

/// A megabyte of Shakespeare's plays; in the public domain.
std::string corpus();

/// demo.yaml: the configuration, which flags may change.
std::string_view configuration();

}  // namespace trainyard::train::demo
