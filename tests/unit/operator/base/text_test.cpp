#include "base/text.h"

#include <catch2/catch.hpp>

using namespace trainyard;

TEST_CASE("digest_of: FNV-1a of 64 bits, as its authors' test vectors have it", "[text]") {
  CHECK(digest_of("") == "cbf29ce484222325");
  CHECK(digest_of("a") == "af63dc4c8601ec8c");
  CHECK(digest_of("foobar") == "85944171f73967e8");
}

TEST_CASE("parts_of: each separator ends a part, so there is one part more", "[text]") {
  using Parts = std::vector<std::string_view>;
  CHECK(parts_of("", '/') == Parts{""});
  CHECK(parts_of("a", '/') == Parts{"a"});
  CHECK(parts_of("a.b/c", '/') == Parts{"a.b", "c"});
  CHECK(parts_of("/a//b/", '/') == Parts{"", "a", "", "b", ""});
}
