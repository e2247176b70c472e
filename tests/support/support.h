#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace trainyard::test {

/// Prints that the running case is skipped and why; ctest then lists it as skipped. The caller returns next.
void skip(const std::string& reason);

/// A file of the repository's, by its path there; of the folder TRAINYARD_SOURCE_DIR, where programs were taken
/// elsewhere.
std::filesystem::path in_repository(const std::filesystem::path& path);

/// The shared reference data (TRAINYARD_TEST_DATA, else ../shared/data beside the checkout); empty where there is none.
/// `if (test_data().empty()) return skip("no reference data");`
std::filesystem::path test_data();

/// A port of the loopback that nobody held a moment ago.
uint16_t free_port();

/// A new empty folder, removed with all it holds at the end of the scope.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace trainyard::test
