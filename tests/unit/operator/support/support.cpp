#include "support/support.h"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

namespace trainyard::test {
namespace fs = std::filesystem;

void skip(const std::string& reason) {
  std::cout << "SKIPPED: " << reason << std::endl;
}

fs::path source_folder() {
  return TRAINYARD_SOURCE_DIR;
}

fs::path test_data() {
  if (const char* const override_path = std::getenv("TRAINYARD_TEST_DATA")) return override_path;
  const fs::path beside = source_folder() / "../shared/data";
  return fs::exists(beside) ? fs::canonical(beside) : fs::path();
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!(text << file.rdbuf())) throw std::runtime_error("cannot read " + path.string());
  return text.str();
}

}  // namespace trainyard::test
