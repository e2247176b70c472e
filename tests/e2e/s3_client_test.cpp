#include "s3/client.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "process.h"
#include "support/support.h"
#include "web/http.h"

using namespace trainyard;
using namespace trainyard::s3;

namespace {

/// s3_server.py, which serves while this lives, and a client of it.
class Served {
 public:
  Served()
      : process_({.words = {"python3", (test::in_repository("tests/e2e") / "s3_server.py").string()}}),
        url_(url_of(process_)),
        settings_(settings_of({{"AWS_ENDPOINT_URL_S3", url_},
                               {"AWS_ACCESS_KEY_ID", "AKIDTEST"},
                               {"AWS_SECRET_ACCESS_KEY", "a/secret+of/the-test"},
                               {"AWS_MAX_ATTEMPTS", "4"}})),
        client(settings_) {}

  /// "busy": 2
  void faults(const std::string& json) const {
    const std::string body = "{" + json + "}";
    web::Http http;
    REQUIRE(http.ask({.address = url_ + "/_faults", .method = "POST", .body = body, .without_proxy = true}).is_good());
  }

 private:
  static std::string url_of(const test::Process& process) {
    REQUIRE(process.says("\n"));
    return test::lines_of(process.out()).at(0);
  }

  test::Process process_;
  std::string url_;
  Settings settings_;

 public:
  Client client;
};

const Name kName{"bucket", "a b/ü+.txt"};

std::string text_at(Client& client, const Name& name) {
  const auto text = client.get(name, size_t{32} << 20);
  return text ? text->bytes : "(none)";
}

}  // namespace

TEST_CASE("s3: what is written is read, listed and removed", "[e2e]") {
  Served served;
  Client& client = served.client;
  CHECK_FALSE(client.head(kName));
  CHECK_FALSE(client.get(kName, 100));
  const auto etag = client.put(kName, std::string("hello"));
  REQUIRE(etag);
  CHECK(client.head(kName)->size == 5);
  CHECK(client.head(kName)->etag == *etag);
  CHECK(text_at(client, kName) == "hello");
  CHECK(client.range(kName, *etag, 1, 3) == "ell");
  CHECK_THROWS_WITH(client.range(kName, *etag, 3, 3), Catch::Contains("and 2 came"));
  CHECK_THROWS_WITH(client.range(kName, "\"other\"", 1, 3), Catch::Contains("HTTP 412"));
  CHECK_THROWS_WITH(client.get(kName, 4), Catch::Contains("it has more than the 4 B"));
  served.faults(R"("page": 1)");
  client.put({"bucket", "a b/z"}, std::string());
  const std::vector<Object> objects = client.list({"bucket", "a b/"});
  REQUIRE(objects.size() == 2);
  CHECK(objects[0].key == "a b/z");
  CHECK(objects[1].key == kName.key);
  client.remove(kName);
  client.remove(kName);
  CHECK_FALSE(client.head(kName));
}

TEST_CASE("s3: a condition decides whether an object is written", "[e2e]") {
  Served served;
  Client& client = served.client;
  const auto first = client.put(kName, std::string("1"), {.is_absent = true});
  REQUIRE(first);
  CHECK_FALSE(client.put(kName, std::string("2"), {.is_absent = true}));
  const auto second = client.put(kName, std::string("2"), {.etag = *first});
  REQUIRE(second);
  CHECK_FALSE(client.put(kName, std::string("3"), {.etag = *first}));
  CHECK(text_at(client, kName) == "2");
  client.remove(kName);
  CHECK_FALSE(client.put(kName, std::string("4"), {.etag = *second}));
  CHECK_FALSE(client.head(kName));
}

TEST_CASE("s3: faults on the way lose nothing that is written", "[e2e]") {
  Served served;
  const std::string fault = GENERATE(R"("busy": 2)", R"("resets": 2)", R"("lost_answers": 2)", R"("wrong_uploads": 2)");
  CAPTURE(fault);
  served.faults(fault);
  CHECK(served.client.put(kName, std::string("hello")));
  CHECK(text_at(served.client, kName) == "hello");
  served.faults(fault);
  const std::string upload = served.client.begin_parts(kName), first(size_t{5} << 20, 'x');
  std::vector<Part> parts{served.client.put_part(kName, upload, 1, first)};
  served.faults(fault);
  parts.push_back(served.client.put_part(kName, upload, 2, std::string("end")));
  served.faults(fault);
  served.client.complete(kName, upload, parts);
  CHECK(text_at(served.client, kName) == first + "end");
}

TEST_CASE("s3: an object in parts is there whole or not at all", "[e2e]") {
  Served served;
  Client& client = served.client;
  const std::string upload = client.begin_parts(kName);
  const std::vector<Part> parts{client.put_part(kName, upload, 1, std::string("all"))};
  CHECK_FALSE(client.head(kName));
  served.faults(R"("late_errors": 2)");  // HTTP 200, and then an error in its body
  client.complete(kName, upload, parts);
  CHECK(text_at(client, kName) == "all");
  const std::string other = client.begin_parts({"bucket", "other"});
  CHECK_THROWS_WITH(client.complete({"bucket", "other"}, other, {{1, "\"wrong\""}}), Catch::Contains("InvalidPart"));
  client.abort({"bucket", "other"}, other);
  client.abort({"bucket", "other"}, other);
  CHECK_FALSE(client.head({"bucket", "other"}));
}
