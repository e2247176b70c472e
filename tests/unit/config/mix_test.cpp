#include "config/mix.h"

#include <catch2/catch.hpp>

#include "error_of.h"

namespace trainyard::config {

TEST_CASE("data.mix: weights become whole numbers without a common divisor", "[config]") {
  struct Case {
    const char* text;
    std::vector<std::pair<std::string, int64_t>> paths;
  };
  for (const auto& [text, paths] : std::vector<Case>{
           {"", {}},
           {"a=5", {{"a", 1}}},
           {"a=0.7,b=0.3", {{"a", 7}, {"b", 3}}},
           {" c4/en = 70 , x=1.jsonl=20, code=.5 ", {{"c4/en", 140}, {"x=1.jsonl", 40}, {"code", 1}}},
           {"a=0.000001,b=0.999999", {{"a", 1}, {"b", 999999}}},
           {"a=1000000,b=2000000", {{"a", 1}, {"b", 2}}},
       }) {
    CAPTURE(text);
    std::vector<std::pair<std::string, int64_t>> found;
    for (const MixedPath& each : mixed_paths(text)) found.emplace_back(each.path, each.weight);
    CHECK(found == paths);
  }
}

TEST_CASE("data.mix: what is no mix says what would be one", "[config]") {
  struct Case {
    const char *text, *error;
  };
  for (const auto& [text, error] : {
           Case{"a", "'a' is no corpus of a mix; write PATH=WEIGHT, such as corpus.jsonl=3"},
           {"a=1,", "'' is no corpus of a mix; write PATH=WEIGHT, such as corpus.jsonl=3"},
           {"=1", "'=1' is no corpus of a mix; write PATH=WEIGHT, such as corpus.jsonl=3"},
           {"a=", "the weight '' of 'a=' must be a number above 0, of at most 6 digits behind the point"},
           {"a=0", "the weight '0' of 'a=0' must be a number above 0, of at most 6 digits behind the point"},
           {"a=.", "the weight '.' of 'a=.' must be a number above 0, of at most 6 digits behind the point"},
           {"a=-1", "the weight '-1' of 'a=-1' must be a number above 0, of at most 6 digits behind the point"},
           {"a=1e3", "the weight '1e3' of 'a=1e3' must be a number above 0, of at most 6 digits behind the point"},
           {"a=0.1234567",
            "the weight '0.1234567' of 'a=0.1234567' must be a number above 0, of at most 6 digits behind the point"},
           {"a=1,b=2,a=3", "the corpus 'a' is given twice; keep one"},
           {"a=1234567,b=1",
            "the weights are as 1,234,567 of 1,234,568 sequences for 'a'; round them, so that they sum to 1,000,000 at "
            "most"},
       }) {
    CAPTURE(text);
    CHECK(error_of([&] { mixed_paths(text); }) == error);
  }
}

}  // namespace trainyard::config
