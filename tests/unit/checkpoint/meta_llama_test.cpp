// Llama as Meta publishes it. The folders are meta/make.py's, and what they hold is what transformers' script converts
// them to.
#include "checkpoint/meta_llama.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/convert.h"
#include "checkpoint/files_beside.h"
#include "checkpoint/open_weights.h"
#include "support/support.h"
#include "tensor/safetensors.h"

namespace trainyard::checkpoint {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kMetaFolders = TRAINYARD_META_FOLDERS;

bool are_equal(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::ranges::equal(a.values<float>(), b.values<float>());
}

/// A folder of Meta's, to be changed.
fs::path meta_copy(const char* name, const test::TemporaryFolder& folder) {
  fs::copy(kMetaFolders / name, folder / name);
  return folder / name;
}

void change_params(const fs::path& folder, const json& changes) {
  json params = json::parse(read_file(folder / "params.json"));
  params.merge_patch(changes);
  write_file_atomically(folder / "params.json", params.dump());
}

void write_zeros(const fs::path& file, const SafetensorsWriter::Declared& tensor) {
  SafetensorsWriter writer(file, std::array{tensor});
  writer.append(Tensor::zeros(tensor.shape, tensor.dtype));
  writer.finish();
}

json config_with(const json& changes) {
  const test::TemporaryFolder folder;
  const fs::path meta = meta_copy("one", folder);
  change_params(meta, changes);
  return json::parse(config_json_of(meta));
}

}  // namespace

TEST_CASE("meta: one file, files cut by rows and by columns give the same rows under Hugging Face's names",
          "[checkpoint]") {
  const SafetensorsFile whole(kMetaFolders / "whole.safetensors");
  for (const char* const name : {"one", "rows", "columns"}) {
    CAPTURE(name);
    const auto weights = open_weights(kMetaFolders / name);
    CHECK(weights->names().size() == whole.entries().size());
    CHECK(weights->stored_dtype("lm_head.weight") == "BF16");
    CHECK(weights->path_of("lm_head.weight").filename() == "consolidated.00.pth");
    for (const SafetensorsEntry& entry : whole.entries()) {
      CAPTURE(entry.name);
      REQUIRE(weights->has(entry.name));
      CHECK(weights->shape(entry.name) == entry.shape);
      CHECK(are_equal(weights->read_rows(entry.name, 0, entry.shape[0]), whole.read(entry.name)));
      for (int64_t begin = 0; begin < entry.shape[0]; ++begin)
        for (const int64_t count : {int64_t{0}, int64_t{1}, (entry.shape[0] - begin) / 2, entry.shape[0] - begin})
          CHECK(are_equal(weights->read_rows(entry.name, begin, count), whole.read_rows(entry.name, begin, count)));
    }
    CHECK_THROWS_WITH(weights->read_rows("model.norm.weight", 15, 2), Catch::Contains("no 2 rows from 15 on"));
    CHECK_THROWS_WITH(weights->shape("two"), Catch::Contains("no tensor 'two'"));
  }
}

TEST_CASE("meta: params.json says what config.json says of the converted model", "[checkpoint]") {
  const json llama_2 = json::parse(config_json_of(kMetaFolders / "columns"));
  CHECK(llama_2.at("vocab_size") == 24);
  CHECK(llama_2.at("intermediate_size") == 56);
  CHECK(llama_2.at("num_key_value_heads") == 2);
  CHECK(llama_2.at("head_dim") == 4);
  CHECK(llama_2.at("rope_theta") == 10000.0);
  CHECK(llama_2.at("max_position_embeddings") == 4096);
  CHECK_FALSE(llama_2.contains("rope_scaling"));
  const json llama_3 = json::parse(config_json_of(kMetaFolders / "rows"));
  CHECK(llama_3.at("rope_theta") == 500000.0);
  CHECK(llama_3.at("max_position_embeddings") == 8192);
  const json llama_3_2 = config_with(json::object());
  CHECK(llama_3_2.at("rope_scaling").at("factor") == 32.0);
  CHECK(llama_3_2.at("tie_word_embeddings") == true);
  const json llama_3_1 = config_with({{"dim", 4096}, {"n_heads", 32}, {"n_kv_heads", nullptr}});
  CHECK(llama_3_1.at("rope_scaling").at("factor") == 8.0);
  CHECK(llama_3_1.at("tie_word_embeddings") == false);
  CHECK(llama_3_1.at("max_position_embeddings") == 131072);
  CHECK(llama_3_1.at("num_key_value_heads") == 32);
  // Llama 3.1 of 8 and Llama 2 of 7 thousand million parameters.
  CHECK(config_with({{"dim", 4096}, {"multiple_of", 1024}}).at("intermediate_size") == 14336);
  CHECK(config_with({{"dim", 4096}, {"multiple_of", 256}, {"ffn_dim_multiplier", nullptr}}).at("intermediate_size") ==
        11008);
}

TEST_CASE("meta: config.json beside the files goes before params.json, which goes nowhere", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const fs::path meta = meta_copy("one", folder);
  CHECK(config_path_of(meta) == meta / "params.json");
  write_file_atomically(meta / "tokenizer.model", "a");
  write_file_atomically(meta / "checklist.chk", "a");
  CHECK(files_beside(meta) == std::vector{meta / "tokenizer.model"});
  write_file_atomically(meta / "config.json", "{}");
  CHECK(config_path_of(meta) == meta / "config.json");
  CHECK(config_json_of(meta) == "{}");
  CHECK(open_weights(meta)->has("model.norm.weight"));
}

TEST_CASE("meta: files that are missing or do not fit say which", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const fs::path rows = meta_copy("rows", folder), columns = meta_copy("columns", folder), one = meta_copy("one", folder);
  fs::copy(one / "consolidated.00.pth", rows / "consolidated.01.pth", fs::copy_options::overwrite_existing);
  CHECK_THROWS_WITH(open_weights(rows), Catch::Contains("consolidated.01.pth: 'layers.0.attention.wk.weight' is"));
  fs::rename(columns / "consolidated.00.pth", columns / "consolidated.02.pth");
  CHECK_THROWS_WITH(open_weights(columns),
                    Catch::Contains("holds 2 files consolidated.*.pth, and consolidated.00.pth is not among them"));
  struct Case {
    json changes;
    const char* problem;
  };
  for (const auto& [changes, problem] : std::vector<Case>{
           {{{"n_kv_heads", 1}}, "the 1 files hold 8 rows of 'layers.0.attention.wk.weight', and 1 heads"},
           {{{"dim", nullptr}}, "params.json: has no dim"},
           {{{"n_layers", 0}}, "params.json: n_layers is 0; it must be a whole number above 0"},
           {{{"n_heads", 3}}, "params.json: n_heads is 3; it must be a divisor of dim"},
           {{{"norm_eps", "small"}}, "params.json: norm_eps is \"small\"; it must be a number above 0"},
           {{{"use_scaled_rope", 1}}, "params.json: use_scaled_rope is 1; it must be true or false"},
           {{{"moe_args", {{"num_experts", 16}}}}, "params.json: moe_args is"},
       }) {
    CAPTURE(problem);
    const test::TemporaryFolder other;
    const fs::path meta = meta_copy("one", other);
    change_params(meta, changes);
    CHECK_THROWS_AS(open_weights(meta), InputError);
    CHECK_THROWS_WITH(open_weights(meta), Catch::Contains(problem));
  }
  write_file_atomically(one / "params.json", "[]");
  CHECK_THROWS_WITH(open_weights(one), Catch::Contains("params.json: is no JSON object"));
}

TEST_CASE("meta: what is written is what was read, tensor by tensor, and a tied head is stored", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const auto weights = open_weights(kMetaFolders / "columns");
  const std::string params = read_file(kMetaFolders / "rows" / "params.json");
  const Exported written = write_meta(*weights, {params, 4, {}}, {.output = folder / "again"});
  CHECK(written.tensors == 21);
  const TorchWeights expected({kMetaFolders / "one" / "consolidated.00.pth"}),
      found({folder / "again" / "consolidated.00.pth"});
  for (const std::string& name : found.names()) {
    CAPTURE(name);
    CHECK(found.stored_dtype(name) == "BF16");
    const int64_t rows = found.shape(name)[0];
    CHECK(are_equal(found.read_rows(name, 0, rows), expected.read_rows(name, 0, rows)));
  }
  CHECK(found.names().size() == 21);
  CHECK(read_file(folder / "again" / "params.json") == params);
  const SafetensorsFile whole(kMetaFolders / "whole.safetensors");
  const auto again = open_weights(folder / "again");
  for (const SafetensorsEntry& entry : whole.entries())
    CHECK(are_equal(again->read_rows(entry.name, 0, entry.shape[0]), whole.read(entry.name)));
  fs::create_directory(folder / "tied");
  write_zeros(folder / "tied" / "model.safetensors", {"model.embed_tokens.weight", DType::Float32, {3, 2}});
  CHECK(write_meta(*open_weights(folder / "tied"), {params, 4, {}}, {.output = folder / "head"}).tensors == 2);
  write_zeros(folder / "tied" / "model.safetensors", {"model.layers.0.self_attn.q_proj.bias", DType::Float32, {3}});
  CHECK_THROWS_WITH(write_meta(*open_weights(folder / "tied"), {params, 4, {}}, {.output = folder / "bias"}),
                    Catch::Contains("Meta's form of Llama has no place for 'model.layers.0.self_attn.q_proj.bias'"));
}

}  // namespace trainyard::checkpoint
