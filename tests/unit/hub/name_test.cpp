#include "hub/name.h"

#include <catch2/catch.hpp>

#include "hub/address.h"
#include "web/address.h"

using namespace trainyard::hub;
using trainyard::web::origin_of;
using trainyard::web::redirected;

TEST_CASE("hub: a name is org/name, with a revision after an @", "[hub]") {
  CHECK(parse_name("Qwen/Qwen3-0.6B") == Name{.repo = "Qwen/Qwen3-0.6B"});
  CHECK(parse_name("org/name@v1.0") == Name{.repo = "org/name", .revision = "v1.0"});
  CHECK(parse_name("org/name@refs/pr/1") == Name{.repo = "org/name", .revision = "refs/pr/1"});
  CHECK(to_string(*parse_name("org/name@v1.0")) == "org/name@v1.0");
  CHECK(to_string(*parse_name("org/name@main")) == "org/name");
}

TEST_CASE("hub: what the hub would not take, and what ends as a file, is no name", "[hub]") {
  const std::string text = GENERATE(
      "", "name", "/name", "org/", "a/b/c", "./name", "../name", "~/name", "/tmp/x", "org/na me", "org/-name",
      "org/name-", "org/.name", "org/na--me", "org/na..me", "org/name.git", "data/corpus.txt", "out/tokenizer.json",
      "org/name@", "org/name@../x", "org/name@/x", "org/name@a..b", "org/name@-x", "org/na\nme", "o/b\xc3\xbc");
  CAPTURE(text);
  CHECK_FALSE(parse_name(text));
  CHECK_FALSE(parse_name("org/" + std::string(93, 'x')));
  CHECK(parse_name("org/" + std::string(92, 'x')));
}

TEST_CASE("hub: only forty small hexadecimal digits are a whole commit", "[hub]") {
  CHECK(is_commit(std::string(40, 'a')));
  CHECK_FALSE(is_commit(std::string(40, 'A')));
  CHECK_FALSE(is_commit(std::string(40, 'g')));
  CHECK_FALSE(is_commit("abc1234"));
  CHECK_FALSE(is_commit(""));
}

TEST_CASE("hub: addresses are those that huggingface_hub asks", "[hub]") {
  const Name model{.repo = "org/name", .revision = "refs/pr/1"}, data{.repo = "org/name", .kind = RepoKind::Dataset};
  CHECK(file_address("https://h", model, "main", "a b/c#d.json") == "https://h/org/name/resolve/main/a%20b/c%23d.json");
  CHECK(file_address("https://h", data, "x/y", "f") == "https://h/datasets/org/name/resolve/x%2Fy/f");
  CHECK(info_address("https://h", model) == "https://h/api/models/org/name/revision/refs%2Fpr%2F1");
  CHECK(info_address("https://h", data) == "https://h/api/datasets/org/name/revision/main");
}

TEST_CASE("hub: the same origin is the same scheme, host and port, whatever else an address says", "[hub]") {
  CHECK(origin_of("https://Hub.example/a/b?c") == "https://hub.example:443");
  CHECK(origin_of("https://hub.example:443") == origin_of("https://hub.example/"));
  CHECK(origin_of("http://hub.example") != origin_of("https://hub.example"));
  CHECK(origin_of("https://hub.example:8443") != origin_of("https://hub.example"));
  CHECK(origin_of("https://hub.example@evil.example/") == "https://evil.example:443");
  CHECK(origin_of("https://hub.example.evil.example/") != origin_of("https://hub.example"));
  CHECK(origin_of("file:///etc/passwd").empty());
  CHECK(origin_of("nothing").empty());
}

TEST_CASE("hub: a redirect may be relative, and never leaves https", "[hub]") {
  CHECK(redirected("https://h/org/old/resolve/main/f", "/org/new/resolve/main/f") ==
        "https://h/org/new/resolve/main/f");
  CHECK(redirected("https://h/a", "https://cdn/x?signed=1") == "https://cdn/x?signed=1");
  CHECK(redirected("http://h/a", "https://cdn/x") == "https://cdn/x");
  CHECK(redirected("http://h/a", "http://cdn/x") == "http://cdn/x");
  CHECK_FALSE(redirected("https://h/a", "http://cdn/x"));
  CHECK_FALSE(redirected("https://h/a", "file:///etc/passwd"));
  CHECK_FALSE(redirected("https://h/a", ""));
}
