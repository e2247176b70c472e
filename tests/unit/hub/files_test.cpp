#include "hub/files.h"

#include <catch2/catch.hpp>

#include "base/safe_name.h"

using namespace trainyard::hub;
using trainyard::is_safe;

TEST_CASE("hub: of a model one form of its weights is taken, and nothing of its folders", "[hub]") {
  const FileNames there{".gitattributes",
                        "LICENSE",
                        "README.md",
                        "config.json",
                        "consolidated.safetensors",
                        "generation_config.json",
                        "model-00001-of-00002.safetensors",
                        "model-00002-of-00002.safetensors",
                        "model.safetensors.index.json",
                        "original/params.json",
                        "pytorch_model.bin",
                        "tokenizer.json",
                        "tokenizer_config.json"};
  CHECK(needed(Need::Weights, there) == FileNames{"LICENSE", "config.json", "generation_config.json",
                                                  "model-00001-of-00002.safetensors",
                                                  "model-00002-of-00002.safetensors", "model.safetensors.index.json",
                                                  "tokenizer.json", "tokenizer_config.json"});
  CHECK(needed(Need::Tokenizer, there) == FileNames{"config.json", "tokenizer.json", "tokenizer_config.json"});
  CHECK(needed(Need::Config, there) == FileNames{"config.json"});
  CHECK(needed(Need::Weights, {"config.json", "model.safetensors", "model-00001-of-00002.safetensors"}) ==
        FileNames{"config.json", "model.safetensors"});
  CHECK(needed(Need::Weights, {"config.json", "pytorch_model.bin", "tf_model.h5"}) ==
        FileNames{"config.json", "pytorch_model.bin"});
  CHECK(needed(Need::Config, {}).empty());
}

TEST_CASE("hub: what a repository or a part of a cache lacks is named", "[hub]") {
  const std::string index = "model.safetensors.index.json", one = "model-00001-of-00002.safetensors",
                    two = "model-00002-of-00002.safetensors";
  CHECK(lacking(Need::Weights, {"config.json", index, one, two}).empty());
  CHECK(lacking(Need::Weights, {"config.json", "model.safetensors"}).empty());
  CHECK_THAT(lacking(Need::Weights, {"config.json", index, one}), Catch::Contains("1 of 2 files"));
  CHECK_THAT(lacking(Need::Weights, {"config.json", index}), Catch::Contains(index));
  CHECK_THAT(lacking(Need::Weights, {"config.json"}), Catch::Contains("weights: none of model.safetensors"));
  CHECK(lacking(Need::Weights, {"model.safetensors"}) == "config.json");
  CHECK(lacking(Need::Config, {"config.json"}).empty());
  CHECK(lacking(Need::Tokenizer, {"tokenizer.model"}).empty());
  CHECK_THAT(lacking(Need::Tokenizer, {"config.json"}), Catch::Contains("tokenizer: none of"));
}

TEST_CASE("hub: patterns match the last part of a name", "[hub]") {
  const FileNames there{"README.md", "a/b.md", "model.safetensors", "model.safetensors.index.json"};
  CHECK(matching(std::vector<std::string>{"*.md"}, there) == FileNames{"README.md", "a/b.md"});
  CHECK(matching(patterns_of_assets("safetensors"), there) ==
        FileNames{"model.safetensors", "model.safetensors.index.json"});
  CHECK(matching(patterns_of_assets("index"), there) == FileNames{"model.safetensors.index.json"});
  CHECK(patterns_of_assets("weights").empty());
}

TEST_CASE("hub: no name of a file leads out of its folder", "[hub]") {
  CHECK(is_safe("a/b-1.json"));
  const std::string file = GENERATE("", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", ".", "a\nb", "a\\b");
  CAPTURE(file);
  CHECK_FALSE(is_safe(file));
}
