#include "hub/data_files.h"

#include <catch2/catch.hpp>

using namespace trainyard::hub;

namespace {

FileNames files_of(const FileNames& there, const std::string& split = "train", const std::string& config = "") {
  return data_files({.config = config, .split = split, .listed = {}}, there);
}

}  // namespace

TEST_CASE("hub: a split of a data set is the files that have its word", "[hub]") {
  const FileNames parquet{"README.md", "data/test-00000-of-00001.parquet", "data/train-00000-of-00002.parquet",
                          "data/train-00001-of-00002.parquet"};
  CHECK(files_of(parquet) == FileNames{"data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"});
  CHECK(files_of(parquet, "test") == FileNames{"data/test-00000-of-00001.parquet"});
  CHECK(files_of(parquet, "validation").empty());
  CHECK(files_of({"train.jsonl", "dev.jsonl"}, "validation") == FileNames{"dev.jsonl"});
  CHECK(files_of({"train/a.txt", "train/b.txt", "test/a.txt"}) == FileNames{"train/a.txt", "train/b.txt"});
  CHECK(files_of({"trainings.jsonl", "train.jsonl"}) == FileNames{"train.jsonl"});
  CHECK(files_of({"train.jsonl", "extra_en.jsonl"}, "extra") == FileNames{"extra_en.jsonl"});
}

TEST_CASE("hub: files of a data set without a word for a split are all of train", "[hub]") {
  CHECK(files_of({".gitattributes", "README.md", "a.jsonl", "b.jsonl"}) == FileNames{"a.jsonl", "b.jsonl"});
  CHECK(files_of({"a.jsonl", "b.jsonl"}, "test").empty());
  CHECK(files_of({"a.jsonl", "test.jsonl"}).empty());
}

TEST_CASE("hub: of files of several kinds those of one are taken", "[hub]") {
  CHECK(files_of({"train.jsonl", "train.parquet", "train.txt"}) == FileNames{"train.parquet"});
  CHECK(files_of({"train.csv", "train.json.gz", "dataset_infos.json"}) == FileNames{"train.json.gz"});
  CHECK(files_of({"train.csv", "train.py"}).empty());
}

TEST_CASE("hub: a folder at the top is a configuration, and one of several has to be named", "[hub]") {
  const FileNames there{"de/train.jsonl", "en/test.jsonl", "en/train.jsonl"};
  CHECK(files_of(there, "train", "en") == FileNames{"en/train.jsonl"});
  CHECK(files_of({"en/test.jsonl", "en/train.jsonl"}) == FileNames{"en/train.jsonl"});
  CHECK(files_of({"data/train.jsonl", "en/train.jsonl"}) == FileNames{"data/train.jsonl"});
  CHECK_THROWS_WITH(files_of(there),
                    Catch::Contains("several configurations") && Catch::Contains("data.config: de, en"));
  CHECK_THROWS_WITH(files_of(there, "train", "fr"),
                    Catch::Contains("no configuration 'fr'") && Catch::Contains("de, en"));
}

TEST_CASE("hub: what a README.md lists goes before names", "[hub]") {
  const FileNames there{"a/one.jsonl", "a/two.jsonl", "b/deep/x.jsonl", "train.jsonl"};
  const std::vector<DataConfiguration> listed{{.name = "first", .patterns = {{"train", {"a/*"}}, {"odd", {"a/o*"}}}},
                                              {.name = "deep", .patterns = {{"train", {"b/**/*.jsonl"}}}}};
  const auto of = [&](const std::string& config, const std::string& split, const auto& configurations) {
    return data_files({.config = config, .split = split, .listed = configurations}, there);
  };
  CHECK(of("first", "train", listed) == FileNames{"a/one.jsonl", "a/two.jsonl"});
  CHECK(of("first", "odd", listed) == FileNames{"a/one.jsonl"});
  CHECK(of("first", "test", listed).empty());
  CHECK(of("deep", "train", listed) == FileNames{"b/deep/x.jsonl"});
  CHECK_THROWS_WITH(of("", "train", listed), Catch::Contains("data.config: first, deep"));
  CHECK_THROWS_WITH(of("third", "train", listed), Catch::Contains("no configuration 'third'"));
  std::vector<DataConfiguration> preferred = listed;
  preferred[1].is_default = true;
  CHECK(of("", "train", preferred) == FileNames{"b/deep/x.jsonl"});
  preferred[1].is_default = false, preferred[0].name = "default";
  CHECK(of("", "odd", preferred) == FileNames{"a/one.jsonl"});
  CHECK(of("", "train", std::vector{listed[0]}) == FileNames{"a/one.jsonl", "a/two.jsonl"});
}

TEST_CASE("hub: a split that has lost a part is not whole", "[hub]") {
  const DataAsked asked{.split = "train"};
  CHECK(lacking_data(asked, {"train-00000-of-00002.parquet", "train-00001-of-00002.parquet"}).empty());
  CHECK_THAT(lacking_data(asked, {"train-00000-of-00003.parquet"}), Catch::Contains("2 of the 3 files"));
  CHECK_THAT(lacking_data(asked, {}), Catch::Contains("files of the split 'train' (data.split)"));
  CHECK(lacking_data(asked, {"a.jsonl", "state-of-9-arts.jsonl"}).empty());
}

TEST_CASE("hub: one path stands for the files of a split and for no others", "[hub]") {
  CHECK(path_of_all({"a/t.jsonl"}, {"a/t.jsonl", "b"}) == "a/t.jsonl");
  CHECK(path_of_all({"d/train-0.parquet", "d/train-1.parquet"},
                    {"d/test-0.parquet", "d/train-0.parquet", "d/train-1.parquet"}) == "d/train-*.parquet");
  CHECK(path_of_all({"a.jsonl", "b.jsonl"}, {"README.md", "a.jsonl", "b.jsonl"}) == "*.jsonl");
  CHECK_FALSE(path_of_all({"a.jsonl", "b.jsonl"}, {"a.jsonl", "b.jsonl", "c.jsonl"}));
  CHECK_FALSE(path_of_all({"x/a.jsonl", "y/b.jsonl"}, {"x/a.jsonl", "y/b.jsonl", "z/c.jsonl"}));
  CHECK_FALSE(path_of_all({"a[1].jsonl", "a[2].jsonl"}, {"a[1].jsonl", "a[2].jsonl"}));
  CHECK_FALSE(path_of_all({}, {"a"}));
  CHECK(path_of_all({"aa.txt", "aaa.txt"}, {"aa.txt", "aaa.txt"}) == "aa*.txt");
}
