#include "support/support.h"

#include <stdlib.h>

#include <cstdlib>
#include <iostream>
#include <stdexcept>

namespace trainyard::test {
namespace fs = std::filesystem;

void skip(const std::string& reason) {
  std::cout << "SKIPPED: " << reason << std::endl;
}

fs::path test_data() {
  if (const char* const override_path = std::getenv("TRAINYARD_TEST_DATA")) return override_path;
  const fs::path beside = fs::path(TRAINYARD_SOURCE_DIR) / "../shared/data";
  return fs::exists(beside) ? fs::canonical(beside) : fs::path();
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "trainyard-test-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp " + pattern);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // a test that failed may have left anything here
  fs::remove_all(path_, ignored);
}

}  // namespace trainyard::test
