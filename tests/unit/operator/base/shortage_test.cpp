#include <catch2/catch.hpp>

#include <new>
#include <stdexcept>
#include <system_error>

#include "base/shortage.h"

namespace trainyard {

TEST_CASE("shortage_in: what a limit holds back is named, with what raises it, and nothing else is a shortage", "[base]") {
  const auto of = [](std::errc code) { return shortage_in(std::system_error(std::make_error_code(code), "pipe2")); };
  CHECK(of(std::errc::too_many_files_open).value() ==
        "pipe2: Too many open files: no descriptor is left; raise the limit on open files (ulimit -n)");
  CHECK_THAT(of(std::errc::resource_unavailable_try_again).value(), Catch::Contains("no further thread or process"));
  CHECK_THAT(shortage_in(std::bad_alloc()).value(), Catch::StartsWith("out of memory"));
  CHECK_FALSE(of(std::errc::bad_file_descriptor));
  CHECK_FALSE(shortage_in(std::runtime_error("pipe2: Too many open files")));
}

}  // namespace trainyard
