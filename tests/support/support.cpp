#include "support/support.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <system_error>

namespace trainyard::test {
namespace fs = std::filesystem;

void skip(const std::string& reason) {
  std::cout << "SKIPPED: " << reason << std::endl;
}

fs::path in_repository(const fs::path& path) {
  const char* const elsewhere = std::getenv("TRAINYARD_SOURCE_DIR");
  return fs::path(elsewhere ? elsewhere : TRAINYARD_SOURCE_DIR) / path;
}

fs::path test_data() {
  if (const char* const override_path = std::getenv("TRAINYARD_TEST_DATA")) return override_path;
  const fs::path beside = in_repository("../shared/data");
  return fs::exists(beside) ? fs::canonical(beside) : fs::path();
}

uint16_t free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool is_bound = ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                        ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  const int error = errno;
  ::close(socket);
  if (!is_bound) throw std::system_error(error, std::system_category(), "a free port");
  return ntohs(address.sin_port);
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
