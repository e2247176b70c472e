#include "tensor/safetensors.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "base/error.h"
#include "support/support.h"
#include "tensor/convert.h"
#include "tensor/safetensors_header.h"

namespace trainyard {
namespace {

using Catch::Contains;
using test::TemporaryFolder;

std::string length_prefix(uint64_t length) {
  return {reinterpret_cast<const char*>(&length), sizeof(length)};
}

/// A file with this JSON as its header and `data_bytes` zeros behind it.
std::filesystem::path write_raw(const TemporaryFolder& folder, const std::string& json, size_t data_bytes) {
  const auto path = folder / "raw.safetensors";
  std::ofstream(path, std::ios::binary) << length_prefix(json.size()) << json << std::string(data_bytes, '\0');
  return path;
}

Tensor counting(Shape shape) {
  Tensor tensor = Tensor::empty(std::move(shape), DType::Float32);
  for (int64_t i = 0; i < tensor.count(); ++i) tensor.data<float>()[i] = static_cast<float>(i);
  return tensor;
}

std::vector<float> values_of(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("safetensors: what is written is read, whole and by rows, with its metadata", "[safetensors]") {
  const TemporaryFolder folder;
  const std::vector<SafetensorsWriter::Declared> declared{{"weight", DType::Float32, {3, 2}},
                                                          {"empty", DType::Float32, {0, 2}},
                                                          {"ids", DType::Int64, {2}},
                                                          {"scalar", DType::Float32, {}}};
  SafetensorsWriter writer(folder / "a.safetensors", declared, {{"format", "pt"}, {"note", "a \"quoted\" one"}});
  const Tensor weight = counting({3, 2});
  writer.append(weight.rows(0, 1));
  writer.append(weight.rows(1, 2));
  writer.append(Tensor::from<int64_t>(std::vector<int64_t>{7, -8}, {2}));
  writer.append(Tensor::from<float>(std::vector<float>{2.5F}, {}));
  writer.finish();

  const SafetensorsFile file(folder / "a.safetensors");
  CHECK(file.metadata() == std::map<std::string, std::string>{{"format", "pt"}, {"note", "a \"quoted\" one"}});
  REQUIRE(file.entries().size() == 4);
  CHECK(file.entries()[0].name == "weight");
  CHECK(values_of(file.read("weight")) == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(values_of(file.read_rows("weight", 1, 2)) == std::vector<float>{2, 3, 4, 5});
  CHECK(file.read_rows("weight", 3, 0).shape() == Shape{0, 2});
  CHECK(file.read("empty").shape() == Shape{0, 2});
  CHECK(file.read("ids").values<int64_t>()[1] == -8);
  CHECK(values_of(file.read("scalar")) == std::vector<float>{2.5F});
  CHECK(file.read("scalar").shape().empty());
  CHECK_THROWS_WITH(file.read_rows("weight", 2, 2), Contains("tensor 'weight': 2 rows from 2 on of shape [3, 2]"));
  CHECK_THROWS_WITH(file.read_rows("weight", std::numeric_limits<int64_t>::max(), 2), Contains("of shape [3, 2]"));
  CHECK_THROWS_WITH(file.read("bias"), Contains("a.safetensors: no tensor 'bias'"));
}

TEST_CASE("safetensors: equal contents give equal bytes, data begins at a multiple of 8", "[safetensors]") {
  const TemporaryFolder folder;
  const std::vector<SafetensorsWriter::Declared> declared{{"w", DType::Float32, {2}}};
  for (const char* name : {"a", "b"}) {
    SafetensorsWriter writer(folder / name, declared, {{"k", "v"}});
    writer.append(counting({2}));
    writer.finish();
  }
  const std::string bytes = read_file(folder / "a");
  CHECK(bytes == read_file(folder / "b"));
  CHECK((bytes.size() - 8) % 8 == 0);
}

TEST_CASE("safetensors: float16 and bfloat16 become float32 exactly, over several pieces", "[safetensors]") {
  const TemporaryFolder folder;
  const std::vector<uint16_t> halves{0x3c00, 0xc000, 0x0001, 0x8000, 0x7bff, 0x7c00, 0x7e00};
  const std::string json = R"({"h":{"dtype":"F16","shape":[7],"data_offsets":[0,14]}})";
  const auto path = folder / "half.safetensors";
  std::ofstream(path, std::ios::binary) << length_prefix(json.size()) << json
                                        << std::string(reinterpret_cast<const char*>(halves.data()), 14);
  const Tensor stored_halves = SafetensorsFile(path).read("h");
  CHECK(stored_halves.dtype() == DType::Float16);
  CHECK(std::memcmp(stored_halves.raw(), halves.data(), 14) == 0);
  const std::vector<float> read = values_of(SafetensorsFile(path).read_rows_as_float32("h", 0, 7));
  CHECK(read[0] == 1.0F);
  CHECK(read[1] == -2.0F);
  CHECK(read[2] == 0x1p-24F);
  CHECK((read[3] == 0.0F && std::signbit(read[3])));
  CHECK(read[4] == 65504.0F);
  CHECK(std::isinf(read[5]));
  CHECK(std::isnan(read[6]));

  constexpr int64_t kRows = 700'001;  // more than one piece, and a last one that is short
  Tensor stored = Tensor::empty({kRows, 1}, DType::BFloat16);
  for (int64_t i = 0; i < kRows; ++i) stored.data<BFloat16>()[i] = BFloat16(static_cast<float>(i % 251));
  SafetensorsWriter writer(folder / "bf16.safetensors",
                           std::vector<SafetensorsWriter::Declared>{{"b", DType::BFloat16, {kRows, 1}}});
  writer.append(stored);
  writer.finish();
  const Tensor converted = SafetensorsFile(folder / "bf16.safetensors").read_rows_as_float32("b", 1, kRows - 1);
  int64_t wrong = 0;
  for (int64_t i = 0; i < kRows - 1; ++i) wrong += converted.data<float>()[i] != static_cast<float>((i + 1) % 251);
  CHECK(wrong == 0);
}

TEST_CASE("safetensors: fields of a tensor that the format does not have are read past", "[safetensors]") {
  const std::string note = GENERATE(R"("x")", "1", "-2", "2.5", "null", "true", "[]", "{}", R"([1,[{"shape":[3]}],"y"])",
                                    R"({"dtype":"U8","a":{"data_offsets":[4,5]}})");
  const std::string first = R"({"w":{"note":)" + note + R"(,"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::string last = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"note":)" + note + R"(,"note":)" +
                           note + R"(},"v":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}})";
  for (const std::string& json : {first, last}) {
    CAPTURE(json);
    const SafetensorsHeader header = parse_safetensors_header(json, 8, "f");
    REQUIRE(header.entries.size() == (json == first ? 1 : 2));
    CHECK(header.entries[0].name == "w");
    CHECK(header.entries[0].stored_dtype == "F32");
    CHECK(header.entries[0].shape == Shape{2});
    CHECK((header.entries[0].begin == 0 && header.entries[0].end == 8));
  }
  CHECK_THROWS_WITH(parse_safetensors_header(R"({"w":{"dtype":"F32","shape":[2],"note":)" + note + "}}", 8, "f"),
                    Catch::Contains("dtype, shape or two data_offsets are missing"));
}

TEST_CASE("safetensors: a header is filled up with spaces, and with nothing else", "[safetensors]") {
  const std::string json = R"({"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  CHECK(parse_safetensors_header(json + "   ", 2, "f").entries.size() == 1);
  CHECK_THROWS_AS(parse_safetensors_header(json + std::string(3, '\0'), 2, "f"), InputError);
  CHECK_THROWS_WITH(parse_safetensors_header(json + std::string(3, '\0'), 2, "f"),
                    Catch::Equals("f: a NUL at byte 53 of the header, which only spaces may fill up"));
  CHECK_THROWS_WITH(parse_safetensors_header(json + std::string(1, '\0') + "x", 2, "f"), Catch::Contains("a NUL at byte"));
  CHECK_THROWS_WITH(parse_safetensors_header(json + "x", 2, "f"), Catch::Contains("malformed JSON"));
}

TEST_CASE("safetensors: a damaged or hostile header is refused by file and tensor", "[safetensors]") {
  struct Case {
    const char* json;
    size_t data_bytes;
    const char* message;
  };
  const Case cases[] = {
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})", 8, "malformed JSON"},
      {R"([])", 0, "no JSON object"},
      {R"()", 0, "no JSON object"},
      {R"({"w":1})", 0, "tensor 'w': the number 1"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}})",
       8, "tensor 'w': the name stands twice"},
      {R"({"w":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8,
       "tensor 'w': 'dtype' stands twice"},
      {R"({"w":{"dtype":"F32","shape":[2]}})", 8, "tensor 'w': dtype, shape or two data_offsets are missing"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", 8, "two data_offsets are missing"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8,8]}})", 8, "more than two data_offsets"},
      {R"({"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8, "the negative number -2"},
      {R"({"w":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}})", 8, "2.5 is no whole number"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,99999999999999999999]}})", 8, "no whole number in range"},
      {R"({"w":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", 8, "a list where none belongs"},
      {R"({"w":{"dtype":{"a":{}},"shape":[2],"data_offsets":[0,8]}})", 8, "an object where a value belongs"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,16]}})", 8,
       "tensor 'w': data_offsets 0 to 16 lie outside the 8 bytes"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8, "lie outside"},
      {R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8,
       "tensor 'w': F32 of shape [3] needs 12 bytes, its data_offsets hold 8"},
      {R"({"a":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
       8, "tensor 'b': begins at byte 4 of the data, which overlaps"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
       8, "tensor 'b': begins at byte 4 of the data, which leaves a gap"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 8, "the tensors end at byte 2 of 8"},
      {R"({"w":{"dtype":"F32","shape":[4611686018427387904,4611686018427387904],"data_offsets":[0,8]}})", 8,
       "overflows"},
      {R"({"w":{"dtype":"F32","shape":[4611686018427387904,4,0],"data_offsets":[0,0]}})", 0, "overflows"},
      {R"({"":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8, "is empty, too long or holds control characters"},
      {R"({"a\u0000b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8, "control characters"},
      {R"({"__metadata__":{"k":1}})", 0, "tensor '__metadata__': the number 1"},
      {R"({"__metadata__":{"k":"1","k":"2"}})", 0, "'k' stands twice"},
      {"{\"\xff\":{}}", 0, "malformed JSON"},
  };
  const TemporaryFolder folder;
  for (const Case& each : cases) {
    INFO(each.json);
    const auto path = write_raw(folder, each.json, each.data_bytes);
    CHECK_THROWS_AS(SafetensorsFile(path), InputError);
    CHECK_THROWS_WITH(SafetensorsFile(path), Contains("raw.safetensors: ") && Contains(each.message));
  }
}

TEST_CASE("safetensors: a truncated file and an absurd header length are refused before anything is allocated",
          "[safetensors]") {
  const TemporaryFolder folder;
  const auto path = folder / "cut.safetensors";
  const auto write = [&](const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; };
  write("");
  CHECK_THROWS_WITH(SafetensorsFile(path), Contains("too short for a safetensors file"));
  write(length_prefix(100) + "{}");
  CHECK_THROWS_WITH(SafetensorsFile(path), Contains("a header of 100 bytes in a file of 10"));
  write(length_prefix(std::numeric_limits<uint64_t>::max()) + "{}");
  CHECK_THROWS_WITH(SafetensorsFile(path), Contains("at most 100000000 are allowed"));
  CHECK_THROWS_WITH(SafetensorsFile(folder / "none"), Contains("none: No such file"));
  CHECK_THROWS_WITH(SafetensorsFile(folder.path()), Contains("not a regular file"));
}

TEST_CASE("safetensors: a type nobody here knows is refused when it is read, not when the file is opened",
          "[safetensors]") {
  const TemporaryFolder folder;
  const auto path = write_raw(
      folder,
      R"({"a":{"dtype":"F4_NEW","shape":[6],"data_offsets":[0,3]},"b":{"dtype":"F32","shape":[1],"data_offsets":[3,7]}})",
      7);
  const SafetensorsFile file(path);
  CHECK(values_of(file.read("b")) == std::vector<float>{0});
  CHECK_THROWS_WITH(file.read("a"), Contains("tensor 'a': F4_NEW is no type that Trainyard reads"));
  CHECK_THROWS_WITH(file.read_rows_as_float32("a", 0, 1), Contains("F4_NEW where floating point was expected"));
}

TEST_CASE("safetensors: numbers of 8 bits are read as they are, and as float32", "[safetensors]") {
  const TemporaryFolder folder;
  const SafetensorsWriter::Declared declared[] = {{"a", DType::Float8E4M3, {3}}, {"b", DType::Float8E5M2, {3}}};
  const std::vector<float> values{448, -0.5, 1.75};
  {
    SafetensorsWriter writer(folder / "f8.safetensors", declared);
    for (const auto& each : declared) writer.append(converted(Tensor::from<float>(values, {3}), each.dtype));
    writer.finish();
  }
  const SafetensorsFile file(folder / "f8.safetensors");
  CHECK(file.entry("a").stored_dtype == "F8_E4M3");
  CHECK(file.entry("b").stored_dtype == "F8_E5M2");
  for (const char* const name : {"a", "b"}) CHECK(values_of(file.read_rows_as_float32(name, 0, 3)) == values);
  CHECK(values_of(converted(file.read("a"), DType::Float32)) == values);
}

TEST_CASE("safetensors: the writer refuses what was not declared", "[safetensors]") {
  const TemporaryFolder folder;
  const std::vector<SafetensorsWriter::Declared> declared{{"w", DType::Float32, {2}}};
  SafetensorsWriter writer(folder / "w.safetensors", declared);
  CHECK_THROWS_WITH(writer.finish(), Contains("'w' still waits for 2 elements"));
  CHECK_THROWS_WITH(writer.append(counting({3})), Contains("waits for 2 elements of float32"));
  CHECK_THROWS_WITH(writer.append(Tensor::zeros({2}, DType::Int32)), Contains("int32 [2] appended to 'w'"));
  writer.append(counting({2}));
  CHECK_THROWS_WITH(writer.append(counting({1})), Contains("appended after the last tensor"));
  const std::vector<SafetensorsWriter::Declared> twice{declared[0], declared[0]};
  CHECK_THROWS_WITH(SafetensorsWriter(folder / "t.safetensors", twice), Contains("the name 'w' stands twice"));
  CHECK_THROWS_AS(SafetensorsWriter(folder / "missing/t.safetensors", declared), std::filesystem::filesystem_error);
}

TEST_CASE("safetensors: every reference file opens and every tensor of it reads", "[safetensors]") {
  if (test::test_data().empty()) return test::skip("no reference data");
  int64_t files = 0;
  for (const auto& found : std::filesystem::recursive_directory_iterator(test::test_data() / "parity")) {
    if (found.path().extension() != ".safetensors") continue;
    const SafetensorsFile file(found.path());
    for (const SafetensorsEntry& entry : file.entries()) CHECK(file.read(entry.name).shape() == entry.shape);
    ++files;
  }
  CHECK(files > 0);
}

}  // namespace trainyard
