#include "support/support.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <random>
#include <stdexcept>

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
  // Below the ports that the kernel gives out by itself: nobody gets it so before who it is for binds it.
  constexpr uint32_t kFirst = 10000, kCount = 20000;
  static thread_local std::minstd_rand random{std::random_device{}()};
  for (int tries = 0; tries < 1000; ++tries) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(kFirst + random() % kCount));
    const bool is_bound = ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
    if (is_bound) return ntohs(address.sin_port);
  }
  throw std::runtime_error("no free port in 1000 tries");
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
