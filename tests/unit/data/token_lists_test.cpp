// Lists of ids that somebody has tokenised.
#include "data/token_lists.h"

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/files.h"
#include "data/batch.h"
#include "data/corpus.h"
#include "support/support.h"

namespace trainyard::data {
namespace {
using Ids = std::vector<int32_t>;

const TokenLists kLists("input_ids", 100);

std::string list_error(const std::string& line) {
  try {
    static_cast<void>(kLists.ids(line, "a.parquet: row 3"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("token lists: ids are taken as they are, and masks say which are targets", "[data]") {
  const auto ids = [](const std::string& line) { return kLists.ids(line, "a.jsonl:1"); };
  CHECK(ids(R"({"input_ids": [3, 99, 0], "labels": null})") == Ids{3, 99, 0});
  CHECK(ids(R"({"input_ids": []})").empty());
  CHECK(ids(R"({"input_ids": [3, 4, 5], "labels": [-100, 4, -100]})") == Ids{~3, 4, ~5});
  CHECK(ids(R"({"input_ids": [3, 4, 5], "loss_mask": [0, 1, 1]})") == Ids{~3, 4, 5});
  CHECK(ids(R"({"input_ids": [3, 4, 5], "loss_mask": [false, true, true], "attention_mask": [1, 1, 0]})") ==
        Ids{~3, 4});
}

TEST_CASE("token lists: what is wrong is told with row and place", "[data]") {
  CHECK(list_error(R"({"input_ids": [3, 100]})") ==
        "a.parquet: row 3: input_ids[1] is 100, but the model's vocabulary goes from 0 to 99");
  CHECK(list_error(R"({"input_ids": [3, -1]})") ==
        "a.parquet: row 3: input_ids[1] is -1, but the model's vocabulary goes from 0 to 99");
  CHECK(list_error(R"({"input_ids": [3, 1.5]})") == "a.parquet: row 3: input_ids[1] is 1.5, no whole number");
  CHECK(list_error(R"({"input_ids": [3, 4], "labels": [4, -100]})") ==
        "a.parquet: row 3: labels[0] is 4, neither -100 nor the id 3 at its place; labels are not shifted");
  CHECK(list_error(R"({"input_ids": [3], "loss_mask": [2]})") ==
        "a.parquet: row 3: loss_mask[0] is 2, neither 0 nor 1");
  CHECK(list_error(R"({"input_ids": [3], "labels": [3, 4]})") ==
        "a.parquet: row 3: 'input_ids' has 1 numbers, and labels has 2");
  CHECK(list_error(R"({"input_ids": [3], "labels": [3], "loss_mask": [1]})") ==
        "a.parquet: row 3: has both labels and loss_mask, which say the same; keep one");
  CHECK(list_error(R"({"labels": [3]})") == "a.parquet: row 3: no list 'input_ids'");
  CHECK(list_error(R"({"input_ids": "3"})") ==
        "a.parquet: row 3: 'input_ids' must be a list of whole numbers, is string");
  CHECK(list_error("[3]") == "a.parquet: row 3: must be a JSON object with the list 'input_ids', is array");
}

TEST_CASE("token lists: a table, lines and their cache are one corpus of ids", "[data]") {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "a.jsonl", "{\"input_ids\": [1, 2], \"labels\": [-100, 2]}\n{\"input_ids\": [3]}\n");
  for (int time = 0; time < 2; ++time) {
    const TokenArray tokens = open_corpus({.path = folder / "a.jsonl"}, kLists);
    Ids targets(3);
    CHECK(tokens.copy_targets(0, targets) == 2);
    CHECK(targets == Ids{kIgnored, 2, 3});
    CHECK(tokens[0] == 1);
  }
  const auto table = test::in_repository("tests/unit/data/records") / "v1.parquet";
  const TokenLists wide("input_ids", 1000);
  CHECK(open_corpus({.path = table, .cache_dir = folder.path()}, wide).size() == 96);
  CHECK_THROWS_WITH(
      open_corpus({.path = table, .cache_dir = folder.path()}, kLists),
      Catch::Contains("v1.parquet: row 30: input_ids[4] is 116, but the model's vocabulary goes from 0 to 99"));
}

}  // namespace trainyard::data
