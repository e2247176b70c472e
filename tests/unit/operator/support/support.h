#pragma once

#include <filesystem>
#include <string>

namespace trainyard::test {

/// Prints that the running case is skipped and why; ctest then lists it as skipped. The caller returns next.
void skip(const std::string& reason);

/// The shared reference data (TRAINYARD_TEST_DATA, else ../shared/data beside the checkout); empty where there is none.
std::filesystem::path test_data();

/// The checkout: for tests that hold a page or a manifest against the code.
std::filesystem::path source_folder();

/// A file's bytes. Throws std::runtime_error with its path.
std::string read_file(const std::filesystem::path& path);

}  // namespace trainyard::test
