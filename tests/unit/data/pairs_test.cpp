#include "data/pairs.h"
#include "data/split.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "support/support.h"

namespace trainyard::data {
namespace {

namespace fs = std::filesystem;

fs::path write_lines(const fs::path& folder, const std::string& text) {
  std::ofstream(folder / "pairs.jsonl") << text;
  return folder / "pairs.jsonl";
}

/// `count` pairs of different sources, the lengths of which jump about.
fs::path many_pairs(const fs::path& folder, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += nlohmann::json{{"a", std::to_string(i) + std::string(static_cast<size_t>(i * 37 % 61), 'x')},
                           {"b", std::string(static_cast<size_t>(1 + i % 5), 'y')}}
                .dump() +
            "\n";
  return write_lines(folder, text);
}

PairArray pairs_of(const fs::path& path, int64_t limit = 512) {
  return tokenise_pairs({.path = path, .source_field = "a", .target_field = "b", .max_source_length = limit},
                        *tokenizer::load_tokenizer("bytes"));
}

std::vector<int32_t> source_of(const Batch& batch, int64_t row) {
  const auto ids = batch.input_ids.rows(row, 1);
  const auto values =
      ids.values<int32_t>().first(static_cast<size_t>(batch.input_lengths.rows(row, 1).values<int32_t>()[0]));
  return {values.begin(), values.end()};
}

/// The sources in their global order, from the loaders of all ranks.
std::vector<std::vector<int32_t>> order_of(const PairArray& pairs, int64_t world, int64_t micro_batches,
                                           PairLoaderOptions options, const nlohmann::json& from = {}) {
  std::vector<std::unique_ptr<Loader>> loaders;
  for (int64_t rank = 0; rank < world; ++rank) {
    options.place = {rank, world};
    options.batch_size = 12 / world;
    loaders.push_back(pair_loader(pairs, options));
    if (!from.empty()) loaders.back()->load_state(from);
  }
  std::vector<std::vector<int32_t>> order;
  for (int64_t k = 0; k < micro_batches; ++k) {
    std::vector<Batch> batches;
    for (const auto& loader : loaders) batches.push_back(loader->next());
    for (int64_t row = 0; row < 12 / world; ++row)
      for (const Batch& batch : batches) order.push_back(source_of(batch, row));
  }
  return order;
}

}  // namespace

TEST_CASE("pairs: the prefix, the first field that a line has, the end of text, and truncation before it", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path path = write_lines(folder.path(), R"({"a": "hello", "c": "x", "b": "no"})"
                                                   "\n\n"
                                                   R"({"a": "worlds apart", "b": "yz"})"
                                                   "\n");
  const auto bytes = tokenizer::load_tokenizer("bytes");
  const PairArray pairs = tokenise_pairs({.path = path,
                                          .source_field = "a",
                                          .target_field = "c, b",
                                          .prefix = "s: ",
                                          .max_source_length = 9,
                                          .max_target_length = 3},
                                         *bytes);
  const auto text = [&](std::span<const int32_t> ids) {
    REQUIRE(ids.back() == *bytes->eos_id());
    return bytes->decode(ids.first(ids.size() - 1));
  };
  REQUIRE(pairs.size() == 2);
  CHECK(text(pairs.source(0)) == "s: hello");
  CHECK(text(pairs.target(0)) == "x");
  CHECK(text(pairs.source(1)) == "s: world");
  CHECK(text(pairs.target(1)) == "yz");
}

TEST_CASE("pairs: a held-out share is the last of them, with texts and fingerprint of its own", "[data]") {
  const test::TemporaryFolder folder;
  const PairArray pairs = pairs_of(many_pairs(folder.path(), 40));
  const PairArray training = side_of(pairs, {0.25, Side::Training}), held_out = side_of(pairs, {0.25, Side::HeldOut});
  REQUIRE(training.size() == 30);
  REQUIRE(held_out.size() == 10);
  for (int64_t i = 0; i < 10; ++i) {
    CHECK(std::ranges::equal(held_out.source(i), pairs.source(30 + i)));
    CHECK(std::ranges::equal(held_out.target(i), pairs.target(30 + i)));
  }
  CHECK(std::ranges::equal(training.target(29), pairs.target(29)));
  CHECK(training.fingerprint() != held_out.fingerprint());
}

TEST_CASE("pairs: two columns of a table are pairs, in files of any kind", "[data]") {
  const fs::path folder = TRAINYARD_TABLES;
  const auto pairs_in = [&](const char* name, const char* source, const char* target, int64_t most = 0) {
    return read_pairs({.path = folder / name, .source_field = source, .target_field = target, .max_samples = most});
  };
  const std::vector<PairText> arrow = pairs_in("arrow/stream.arrow", "text", "summary, after");
  REQUIRE(arrow.size() == 60);
  for (const auto& [source, target] : arrow) CHECK(target == source + "!");
  const std::vector<PairText> parquet = pairs_in("parquet/checksums_v1.parquet", "plain", "dictionary");
  REQUIRE(parquet.size() == 12);
  CHECK(parquet[0].source == "row 1");
  CHECK(parquet[11].target == parquet[2].source);
  CHECK(pairs_in("parquet/checksums_v2.parquet", "plain", "dictionary", 5).size() == 5);
  const test::TemporaryFolder both;
  fs::copy(folder / "parquet/checksums_v1.parquet", both / "a.parquet");
  fs::copy(folder / "parquet/checksums_v2.parquet", both / "b.parquet");
  const PairOptions some{.path = both.path(), .source_field = "plain", .target_field = "dictionary", .max_samples = 15};
  CHECK(read_pairs(some).size() == 15);
  CHECK_THROWS_WITH(pairs_in("parquet/checksums_v1.parquet", "plane", "dictionary"),
                    Catch::Contains("has no column 'plane'; its columns of text: plain, dictionary"));
  CHECK_THROWS_WITH(pairs_in("arrow/stream.arrow", "text", "summary, int"),
                    Catch::Contains("the column 'int' is of the type Int"));
  CHECK_THROWS_WITH(pairs_in("arrow/empty.arrow", "text", "text"), Catch::Contains("no line or row with a pair"));
  std::ofstream(both / "c.txt") << "text";
  CHECK_THROWS_WITH(read_pairs({.path = both / "c.txt", .source_field = "a", .target_field = "b"}),
                    Catch::Contains("pairs of source and target come from .jsonl files and tables"));
}

TEST_CASE("pairs: what the user must mend is named with file and line", "[data]") {
  const test::TemporaryFolder folder;
  const auto fails = [&](const std::string& text, PairOptions options, const std::string& message) {
    options.path = write_lines(folder.path(), text);
    CHECK_THROWS_WITH(tokenise_pairs(options, *tokenizer::load_tokenizer("bytes")), Catch::Contains(message));
  };
  const PairOptions options{.source_field = "a", .target_field = "b,c"};
  fails("{\"a\": \"x\", \"b\": \"y\"}\n{\"a\": \"x\"}\n", options, "pairs.jsonl:2: no field 'b' or 'c'");
  fails("{\"a\": 3, \"b\": \"y\"}\n", options, "pairs.jsonl:1: a is no string");
  fails("{}\n{\"a\": \"x\", }\n", options, "pairs.jsonl:1: no field 'a'");
  fails("\n{\"a\": \"x\", }\n", options, "pairs.jsonl:2: not JSON at byte 12 of the line: syntax error while parsing");
  fails("\n[1]\n", options, "pairs.jsonl:2: must be a JSON object, is array");
  fails("\n \n", options, "no line or row with a pair");
  PairOptions strict = options;
  strict.overlong = Overlong::Refuse, strict.max_source_length = 4;
  fails("{\"a\": \"xyz\", \"b\": \"y\"}\n{\"a\": \"xyzw\", \"b\": \"y\"}\n", strict,
        "pair 2: the source has 5 tokens with its end of text, over the limit of 4");
}

TEST_CASE("pair_loader: padding is -100 in targets and counted out of sources", "[data]") {
  const test::TemporaryFolder folder;
  const PairArray pairs = pairs_of(many_pairs(folder.path(), 40));
  const auto padding = GENERATE(Padding::MaxLength, Padding::Longest, Padding::Bucket);
  const int64_t multiple = GENERATE(1, 64);
  const auto loader = pair_loader(pairs, {.batch_size = 4,
                                          .padding = padding,
                                          .max_source_length = 99,
                                          .max_target_length = 9,
                                          .pad_to_multiple_of = multiple,
                                          .pad_token = 7});
  const Batch batch = loader->next();
  CHECK(batch.valid_tokens == count_valid(batch.targets));
  if (padding == Padding::MaxLength) {
    CHECK(batch.input_ids.shape() == Shape{4, multiple == 1 ? 99 : 128});
    CHECK(batch.targets.shape() == Shape{4, multiple == 1 ? 9 : 64});
    CHECK(loader->longest_source() == batch.input_ids.size(1));
    CHECK(loader->longest_sequence() == batch.targets.size(1));
  }
  int32_t longest = 0;
  for (int64_t row = 0; row < 4; ++row) {
    const int32_t length = batch.input_lengths.values<int32_t>()[static_cast<size_t>(row)];
    longest = std::max(longest, length);
    const auto ids = batch.input_ids.rows(row, 1);
    for (int64_t t = 0; t < ids.count(); ++t)
      CHECK((ids.values<int32_t>()[static_cast<size_t>(t)] == 7) == (t >= length));
  }
  if (padding == Padding::MaxLength) return;
  CHECK(batch.input_ids.size(1) % multiple == 0);
  CHECK(batch.input_ids.size(1) >= longest);
  CHECK(batch.input_ids.size(1) < longest + multiple);
  CHECK(batch.targets.size(1) % multiple == 0);
}

TEST_CASE("pair_loader: one order for any number of ranks, each pair once an epoch, another order in the next",
          "[data]") {
  const test::TemporaryFolder folder;
  const PairArray pairs = pairs_of(many_pairs(folder.path(), 1100));  // past a window
  const auto padding = GENERATE(Padding::Longest, Padding::Bucket);
  const PairLoaderOptions options{.seed = 5, .padding = padding};
  const auto order = order_of(pairs, 1, 184, options);
  for (const int64_t world : {2, 3, 4}) CHECK(order_of(pairs, world, 184, options) == order);
  const std::set<std::vector<int32_t>> first(order.begin(), order.begin() + 1100),
      second(order.begin() + 1100, order.begin() + 2200);
  CHECK(first.size() == 1100);
  CHECK(second == first);
  CHECK_FALSE(std::equal(order.begin(), order.begin() + 1100, order.begin() + 1100));
}

TEST_CASE("pair_loader: goes on from its state at another number of ranks, and other data or order is refused",
          "[data]") {
  const test::TemporaryFolder folder;
  const PairArray pairs = pairs_of(many_pairs(folder.path(), 100));
  PairLoaderOptions options{.seed = 5};
  const auto order = order_of(pairs, 1, 20, options);
  options.batch_size = 4, options.place = {1, 3};
  const auto loader = pair_loader(pairs, options);
  for (int i = 0; i < 9; ++i) static_cast<void>(loader->next());
  const auto state = loader->state();
  const auto rest = order_of(pairs, 2, 11, options, state);
  CHECK(std::equal(rest.begin(), rest.end(), order.begin() + 9 * 12));
  options.seed = 6;
  CHECK_THROWS_WITH(pair_loader(pairs, options)->load_state(state), Catch::Contains("seed"));
}

TEST_CASE("pair_loader: buckets leave less than half of the padding", "[data]") {
  const test::TemporaryFolder folder;
  const PairArray pairs = pairs_of(many_pairs(folder.path(), 512));
  const auto padding_of = [&](Padding padding) {
    const auto loader = pair_loader(pairs, {.batch_size = 8, .padding = padding});
    int64_t padded = 0;
    for (int i = 0; i < 64; ++i) {
      const Batch batch = loader->next();
      padded += batch.input_ids.count();
      for (const int32_t length : batch.input_lengths.values<int32_t>()) padded -= length;
    }
    return padded;
  };
  CHECK(padding_of(Padding::Bucket) * 2 < padding_of(Padding::Longest));
}

}  // namespace trainyard::data
