#include "local/containers/gpus.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>

#include "local/caller.h"
#include "support/support.h"

namespace trainyard::local {
namespace {

using Names = std::vector<std::string>;

TEST_CASE("gpus: those of the driver's files, numbered as CUDA does, or those that are chosen", "[local]") {
  const test::TemporaryFolder devices;
  CHECK(gpus_here(devices / "nowhere") == Names{});
  for (const char* file : {"nvidia3", "nvidia10", "nvidiactl", "nvidia-uvm", "nvidia", "null"})
    std::ofstream(devices / file) << "";
  CHECK(gpus_here(devices.path()) == Names{"0", "1"});
  ::setenv("CUDA_VISIBLE_DEVICES", "4,GPU-8932f937", 1);
  CHECK(gpus_here(devices.path()) == Names{"4", "GPU-8932f937"});
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_CASE("gpus: pods get those that fewest have, and share where they ask for more", "[local]") {
  Gpus gpus({"0", "1", "2"});
  const Names first = gpus.take(2);
  CHECK(first == Names{"0", "1"});
  CHECK_FALSE(gpus.are_shared());
  CHECK(gpus.take(2) == Names{"2", "0"});
  CHECK(gpus.are_shared());
  gpus.give_back(first);
  CHECK_FALSE(gpus.are_shared());
  CHECK(gpus.take(9) == Names{"1", "0", "2"});
}

}  // namespace
}  // namespace trainyard::local
