#include "hub/settings.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/files.h"
#include "support/support.h"

using namespace trainyard;
using namespace trainyard::hub;
using std::chrono::seconds;

TEST_CASE("hub: the cache is where huggingface_hub looks for it", "[hub]") {
  const auto cache_of = [](const Environment& environment) { return settings_of(environment).cache; };
  CHECK(cache_of({{"HOME", "/home/a"}}) == "/home/a/.cache/huggingface/hub");
  CHECK(cache_of({{"HOME", "/home/a"}, {"XDG_CACHE_HOME", "/x"}}) == "/x/huggingface/hub");
  CHECK(cache_of({{"HOME", "/home/a"}, {"HF_HOME", "~/hf"}}) == "/home/a/hf/hub");
  CHECK(cache_of({{"HF_HOME", "/hf"}, {"HUGGINGFACE_HUB_CACHE", "/old"}}) == "/old");
  CHECK(cache_of({{"HF_HUB_CACHE", "/c"}, {"HUGGINGFACE_HUB_CACHE", "/old"}}) == "/c");
}

TEST_CASE("hub: variables say whom to ask, and how long to wait", "[hub]") {
  const Settings plain = settings_of({{"HOME", "/nowhere"}});
  CHECK(plain.endpoint == "https://huggingface.co");
  CHECK_FALSE(plain.is_offline);
  CHECK(plain.answer_timeout == seconds(10));
  const Settings set = settings_of({{"HF_ENDPOINT", "https://mirror.example/hf/"},
                                    {"HF_HUB_OFFLINE", "Yes"},
                                    {"HF_HUB_ETAG_TIMEOUT", "3"},
                                    {"HF_HUB_DOWNLOAD_TIMEOUT", "60"}});
  CHECK(set.endpoint == "https://mirror.example/hf");
  CHECK(set.is_offline);
  CHECK(set.answer_timeout == seconds(3));
  CHECK(set.silence == seconds(60));
  CHECK_THROWS_WITH(settings_of({{"HF_HUB_ETAG_TIMEOUT", "0"}}), Catch::Contains("HF_HUB_ETAG_TIMEOUT is '0'"));
  const std::string endpoint = GENERATE("mirror.example", "ftp://x", "https://a@b", "https://a b");
  CHECK_THROWS_WITH(settings_of({{"HF_ENDPOINT", endpoint}}), Catch::Contains("HF_ENDPOINT must be"));
}

TEST_CASE("hub: a token is HF_TOKEN, else that of a file, else none", "[hub]") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder.path() / "token", "of-the-file\n");
  const std::string home = folder.path().string();
  const auto token_of = [](const Environment& environment) { return settings_of(environment).token; };
  CHECK(token_of({{"HF_HOME", home}}) == "of-the-file");
  CHECK(token_of({{"HF_HOME", home}, {"HF_TOKEN", " given \n"}}) == "given");
  CHECK(token_of({{"HF_HOME", "/nowhere"}, {"HF_TOKEN_PATH", home + "/token"}}) == "of-the-file");
  CHECK(token_of({{"HF_HOME", home}, {"HF_TOKEN", "given"}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}}).empty());
  CHECK(token_of({{"HF_HOME", "/nowhere"}}).empty());
  CHECK_THROWS_WITH(token_of({{"HF_TOKEN", "a\r\nb"}}),
                    Catch::Contains("HF_TOKEN") && !Catch::Contains("a\r"));  // the token is never printed
}
