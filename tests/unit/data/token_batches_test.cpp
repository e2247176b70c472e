#include <catch2/catch.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/loaders.h"
#include "support/support.h"
#include "tensor/safetensors.h"

namespace trainyard::data {
namespace {
namespace fs = std::filesystem;

struct Named {
  std::string name;
  Tensor tensor;
};

fs::path write(const fs::path& path, const std::vector<Named>& tensors) {
  std::vector<SafetensorsWriter::Declared> declared;
  for (const auto& [name, tensor] : tensors) declared.push_back({name, tensor.dtype(), tensor.shape()});
  SafetensorsWriter writer(path, declared);
  for (const Named& named : tensors) writer.append(named.tensor);
  writer.finish();
  return path;
}

Tensor ints(std::vector<int32_t> values, Shape shape) {
  return Tensor::from(std::span<const int32_t>(values), std::move(shape));
}

std::vector<int32_t> values(const Tensor& tensor) {
  const auto span = tensor.values<int32_t>();
  return {span.begin(), span.end()};
}

}  // namespace

TEST_CASE("token batches: targets and positions of every parity case and step are the reference's", "[data]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  const std::string name =
      GENERATE("qwen3-tiny", "qwen3-untied", "qwen3-odd", "llama3-tiny", "llama2-tiny", "llama-packed");
  const fs::path file = test::test_data() / "parity" / name / "golden.safetensors";
  const SafetensorsFile golden(file);
  const auto run = token_batches(file, {});
  REQUIRE(run->steps_available() == 30);
  for (int64_t step = 0; step < 30; ++step) {
    INFO(name << ", step " << step);
    const Batch batch = run->next();
    CHECK(values(batch.input_ids) == values(golden.read_rows("train.input_ids", step, 1)));
    CHECK(values(batch.targets) == values(golden.read_rows("train.targets", step, 1)));
    CHECK(batch.position_ids.defined() == golden.has("train.position_ids"));
    if (batch.position_ids.defined())
      CHECK(values(batch.position_ids) == values(golden.read_rows("train.position_ids", step, 1)));
    CHECK(batch.valid_tokens ==
          std::ranges::count_if(values(batch.targets), [](int32_t id) { return id != kIgnored; }));
  }
  CHECK_THROWS_WITH(run->next(), Catch::Contains("has 30 steps, and step 31"));
  CHECK(values(token_batches(file, {.prefer = Prefer::SingleBatch})->next().targets) == values(golden.read("targets")));
}

TEST_CASE("token batches: rows are dealt round robin and pieces are consecutive, and a rank may have none", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path file =
      write(folder / "a.safetensors", {{"input_ids", ints({0, 1, 10, 11, 20, 21, 30, 31, 40, 41}, {5, 2})}});
  const auto first_ids = [](const Batch& batch) {
    std::vector<int32_t> ids;
    for (int64_t row = 0; row < batch.input_ids.size(0); ++row)
      ids.push_back(batch.input_ids.rows(row, 1).values<int32_t>()[0]);
    return ids;
  };
  CHECK(first_ids(token_batches(file, {.place = {0, 2}})->next()) == std::vector<int32_t>{0, 20, 40});
  CHECK(first_ids(token_batches(file, {.place = {1, 2}})->next()) == std::vector<int32_t>{10, 30});
  const Batch none = token_batches(file, {.place = {6, 8}})->next();
  CHECK(none.input_ids.shape() == Shape{0, 2});
  CHECK(none.valid_tokens == 0);
  const auto pieces = token_batches(file, {.place = {1, 2}, .accumulation_steps = 4});
  std::vector<int32_t> all;
  for (int piece = 0; piece < 4; ++piece)
    for (const int32_t id : first_ids(pieces->next())) all.push_back(id);
  CHECK(all == std::vector<int32_t>{10, 30});
  CHECK(pieces->sequences_seen() == 5);
  CHECK(first_ids(token_batches(file, {})->next()).size() == 5);
}

TEST_CASE("token batches: one batch serves for ever, int64 as well, and labels default to the ids", "[data]") {
  const test::TemporaryFolder folder;
  const std::vector<int64_t> ids{1, 2, 3, 4};
  const auto loader = token_batches(
      write(folder / "a.safetensors", {{"input_ids", Tensor::from(std::span<const int64_t>(ids), {1, 4})}}), {});
  CHECK_FALSE(loader->steps_available());
  for (int step = 0; step < 3; ++step) {
    const Batch batch = loader->next();
    CHECK(values(batch.input_ids) == std::vector<int32_t>{1, 2, 3, 4});
    CHECK(values(batch.targets) == std::vector<int32_t>{2, 3, 4, kIgnored});
    CHECK(batch.valid_tokens == 3);
  }
}

TEST_CASE("token batches: a run goes on at the step where it stopped, at any world size", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path file =
      write(folder / "a.safetensors", {{"train.input_ids", ints({0, 1, 2, 3, 4, 5, 6, 7}, {4, 1, 2})}});
  const auto before = token_batches(file, {});
  before->next();
  before->next();
  const auto after = token_batches(file, {.place = {0, 2}, .accumulation_steps = 2});
  after->load_state(before->state());
  const Batch empty = after->next();  // of one row the first of two pieces has none
  CHECK(empty.input_ids.size(0) == 0);
  CHECK(values(after->next().input_ids) == std::vector<int32_t>{4, 5});
  const fs::path other = write(folder / "b.safetensors", {{"train.input_ids", ints({0, 1, 2, 3}, {2, 1, 2})}});
  CHECK_THROWS_WITH(token_batches(other, {})->load_state(before->state()), Catch::Contains("shape"));
}

TEST_CASE("token batches: what is wrong in the file is named with tensor, row and token", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder / "a.safetensors";
  const auto fails = [&](const std::vector<Named>& tensors, const std::string& message, int64_t vocab_size = 0) {
    write(path, tensors);
    CHECK_THROWS_AS(token_batches(path, {.vocab_size = vocab_size})->next(), InputError);
    CHECK_THROWS_WITH(token_batches(path, {.vocab_size = vocab_size})->next(), Catch::Contains(message));
  };
  const Tensor good = ints({1, 2, 3, 4, 5, 6}, {2, 3});
  fails({{"ids", good}}, "neither input_ids nor train.input_ids");
  fails({{"input_ids", Tensor::zeros({2, 3}, DType::Float32)}}, "input_ids is F32, must be I32 or I64");
  fails({{"input_ids", ints({1, 2}, {2})}}, "input_ids is [2], must be [rows, tokens]");
  fails({{"input_ids", ints({}, {0, 3})}}, "none of them 0");
  fails({{"input_ids", good}, {"labels", ints({1, 2}, {1, 2})}}, "labels is [1, 2], but input_ids is [2, 3]");
  fails({{"input_ids", good}}, "input_ids: row 1, token 2: 6 is not in the model's vocabulary (0 to 5)", 6);
  fails({{"input_ids", ints({1, -1, 3}, {1, 3})}}, "row 0, token 1: -1 is not a token id");
  fails({{"input_ids", good}, {"labels", ints({1, 2, 3, 4, 9, 6}, {2, 3})}}, "labels: row 1, token 1: 9 is not", 8);
  fails({{"input_ids", good}, {"labels", ints({1, 2, 3, 4, -5, 6}, {2, 3})}}, "labels: row 1, token 1: -5 is not");
  fails({{"input_ids", good}, {"position_ids", ints({0, 1, 2, 0, 2, 3}, {2, 3})}},
        "position_ids: row 1, token 1: 2 is not 1");
  CHECK_THROWS_AS(token_batches(folder / "none", {}), InputError);
}

}  // namespace trainyard::data
