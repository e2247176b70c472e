#include <catch2/catch.hpp>

#include "base/error.h"
#include "comm/nccl.h"

namespace trainyard::comm {

TEST_CASE("nccl: its library is found with all that is called of it, a build without CUDA says that it is one",
          "[comm]") {
  if (const std::string found = describe_nccl(); !found.empty()) {
    CHECK_THAT(found, Catch::Matches("2\\.[0-9]+\\.[0-9]+"));
  } else {
    const Settings settings{.device = {DeviceKind::Cuda, 0}, .world = 2};
    CHECK_THROWS_WITH(connect_nccl(settings, nullptr, nullptr), Catch::StartsWith("this build has no CUDA"));
  }
}

}  // namespace trainyard::comm
