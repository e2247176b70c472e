#include "checkpoint/open_weights.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/convert.h"
#include "checkpoint/name_map.h"
#include "checkpoint/pickle.h"
#include "ranks.h"
#include "support/support.h"
#include "tensor/convert.h"

namespace trainyard::checkpoint {
namespace {

using Catch::Contains;
using test::TemporaryFolder;
namespace fs = std::filesystem;

const fs::path kReference = test::in_repository("tests/unit/checkpoint/reference");

struct Stored {
  std::string name;
  Shape shape, offsets;
  float first = 0;  ///< elements count up from it
};

Tensor counting(const Shape& shape, float first) {
  Tensor tensor = Tensor::empty(shape, DType::Float32);
  std::iota(tensor.values<float>().begin(), tensor.values<float>().end(), first);
  return tensor;
}

void write(const fs::path& path, const std::vector<Stored>& tensors, bool says_offsets = true) {
  std::vector<SafetensorsWriter::Declared> declared;
  nlohmann::json offsets = nlohmann::json::object();
  for (const Stored& each : tensors) {
    declared.push_back({each.name, DType::Float32, each.shape});
    offsets[each.name] = {{"saved_offsets", each.offsets}};
  }
  std::map<std::string, std::string> metadata;
  if (says_offsets) metadata["DCP_SHARDING_INFO"] = offsets.dump();
  SafetensorsWriter writer(path, declared, metadata);
  for (const Stored& each : tensors) writer.append(counting(each.shape, each.first));
  writer.finish();
}

std::vector<float> read(const Weights& weights, const std::string& name, int64_t begin, int64_t count) {
  const Tensor rows = weights.read_rows(name, begin, count);
  return {rows.values<float>().begin(), rows.values<float>().end()};
}

/// What PyTorch put into each reference file: bench/state_dicts.
void check_reference(const Weights& weights) {
  CHECK(weights.shape("layer.weight") == Shape{3, 4});
  CHECK(read(weights, "layer.weight", 1, 2) == std::vector<float>{4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(weights.shape("layer.bias") == Shape{5});
  CHECK(read(weights, "layer.bias", 0, 5) == std::vector<float>{0, 0.5, 1, 1.5, 2});
}

}  // namespace

TEST_CASE("weights: PyTorch's distributed checkpoint is read by rows, whatever dimension it was cut in",
          "[checkpoint]") {
  const TemporaryFolder folder;
  write(folder / "shard-00001-model-00001-of-00001.safetensors",
        {{"rows", {2, 3}, {0, 0}, 0}, {"columns", {3, 2}, {0, 0}, 0}, {"norm", {2}, {0}, 0}});
  write(folder / "shard-00002-model-00001-of-00001.safetensors",
        {{"rows", {1, 3}, {2, 0}, 6}, {"columns", {3, 1}, {0, 2}, 100}, {"norm", {1}, {2}, 2}});
  const auto weights = open_weights(folder.path());
  CHECK(weights->shape("rows") == Shape{3, 3});
  CHECK(read(*weights, "rows", 1, 2) == std::vector<float>{3, 4, 5, 6, 7, 8});
  CHECK(weights->shape("columns") == Shape{3, 3});
  CHECK(read(*weights, "columns", 1, 2) == std::vector<float>{2, 3, 101, 4, 5, 102});
  CHECK(read(*weights, "norm", 0, 3) == std::vector<float>{0, 1, 2});
}

TEST_CASE("weights: a distributed checkpoint with a rank's file missing or twice is refused by tensor",
          "[checkpoint]") {
  const TemporaryFolder folder;
  write(folder / "shard-00001-model-00001-of-00001.safetensors", {{"w", {2, 3}, {0, 0}, 0}});
  write(folder / "shard-00003-model-00001-of-00001.safetensors", {{"w", {2, 3}, {4, 0}, 0}});
  CHECK_THROWS_WITH(open_weights(folder.path()),
                    Contains("tensor 'w' of shape [6, 3]: 6 of its 18 elements are in no file; is the file of a rank "
                             "missing?"));
  write(folder / "shard-00002-model-00001-of-00001.safetensors", {{"w", {3, 3}, {2, 0}, 0}});
  CHECK_THROWS_WITH(open_weights(folder.path()), Contains("tensor 'w': its part from [4, 0] on is in ") &&
                                                     Contains("shard-00002-model-00001-of-00001.safetensors and in "));
}

TEST_CASE("weights: files of torch.save are read without running their pickle", "[checkpoint]") {
  check_reference(*open_weights(kReference / "state_dict.pt"));
  check_reference(*open_weights(kReference / "wrapped.pt"));  // {"model": …, "optimizer": …}
  CHECK_THROWS_WITH(open_weights(kReference / "hostile.pt"),
                    Contains("hostile.pt: ") && Contains("it calls posix.system, which is refused"));
  CHECK_THROWS_WITH(open_weights(kReference / "transposed.pt"), Contains("with strides [1, 4] is not row after row"));
}

TEST_CASE("weights: what PyTorch's two ranks wrote through HuggingFaceStorageWriter is read", "[checkpoint]") {
  check_reference(*open_weights(kReference / "dcp"));
}

TEST_CASE("weights: a torch file that is cut, no archive or holds no tensors is refused by name", "[checkpoint]") {
  const TemporaryFolder folder;
  const std::string whole = read_file(kReference / "state_dict.pt");
  write_file_atomically(folder / "cut.pt", whole.substr(0, whole.size() / 2));
  CHECK_THROWS_WITH(open_weights(folder / "cut.pt"), Contains("cut.pt: not a zip archive"));
  write_file_atomically(folder / "text.bin", "no archive");
  CHECK_THROWS_WITH(open_weights(folder / "text.bin"), Contains("text.bin: not a zip archive"));
  CHECK_THROWS_WITH(open_weights(folder.path()), Contains("name the one you mean"));
  CHECK_THROWS_WITH(open_weights(folder / "none"), Contains("no such file or folder"));
}

TEST_CASE("pickle: anything that would run code is refused, by what it calls", "[checkpoint]") {
  using namespace std::string_literals;
  struct Row {
    const char* situation;
    std::string text;
    const char* says;
  };
  const std::vector<Row> rows{
      {"calls a function", "\x80\x02"s + "cposix\nsystem\nX\x02\0\0\0ls\x85R."s,
       "it calls posix.system, which is refused"},
      {"calls eval by a name on the stack", "\x80\x04\x8c\x08"s + "builtins\x8c\x04"s + "eval\x93)R.",
       "it calls builtins.eval"},
      {"makes an object", "\x80\x02"s + "csubprocess\nPopen\n)\x81."s, "it makes an object of subprocess.Popen"},
      {"makes an object the old way", "(isubprocess\nPopen\n.", "it makes an object of subprocess.Popen"},
      {"sets attributes of what is no dictionary", "])b.", "a container is missing"},
      {"ends in the middle", "\x80\x02}X\xff\0\0\0w"s, "the text ends in the middle"},
      {"has no value", "\x80\x02.", "a value is missing"},
      {"remembers nothing", "h\x05."s, "nothing is remembered as 5"},
      {"has an opcode of no tensors", "P0\n.", "opcode 0x50"},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CHECK_THROWS_AS(Pickle(row.text, "file"), InputError);
    CHECK_THROWS_WITH(Pickle(row.text, "file"), Contains("file: ") && Contains(row.says));
  }
  CHECK_THROWS_WITH(tensors_below(Pickle("}.", "file").root(), "file"), Contains("no dictionary of tensors"));
}

TEST_CASE("name map: renames, splits and transposes", "[checkpoint]") {
  const TemporaryFolder folder;
  write(folder / "model.safetensors",
        {{"h.0.qkv", {4, 2}, {0, 0}, 0}, {"h.0.up", {2, 3}, {0, 0}, 50}, {"norm", {2}, {0}, 7}}, false);
  write_file_atomically(folder / "map.yaml", R"(rename:
  - {from: "h.{n}.up", to: "layers.{n}.up.weight"}
split:
  - from: "h.{n}.qkv"
    to: ["layers.{n}.q", "layers.{n}.k", "layers.{n}.v"]
transpose: ["layers.{n}.up.weight"]
)");
  const std::vector<Wanted> wanted{{"layers.0.q", {2, 2}}, {"layers.0.k", {1, 2}}, {"layers.0.v", {1, 2}}};
  const auto weights = mapped(open_weights(folder.path()), NameMap(folder / "map.yaml"), wanted);
  CHECK(read(*weights, "layers.0.q", 1, 1) == std::vector<float>{2, 3});
  CHECK(read(*weights, "layers.0.k", 0, 1) == std::vector<float>{4, 5});
  CHECK(read(*weights, "layers.0.v", 0, 1) == std::vector<float>{6, 7});
  CHECK(weights->shape("layers.0.up.weight") == Shape{3, 2});
  CHECK(read(*weights, "layers.0.up.weight", 1, 2) == std::vector<float>{51, 54, 52, 55});
  CHECK(read(*weights, "norm", 0, 2) == std::vector<float>{7, 8});
  CHECK_THROWS_WITH(weights->shape("layers.0.o"), Contains("no tensor becomes 'layers.0.o'; add a rule"));
}

TEST_CASE("name map: what does not fit is told with file and line", "[checkpoint]") {
  struct Row {
    const char *map, *says;
  };
  const std::vector<Row> rows{
      {"rename: [{from: x, to: y}]", "map.yaml:1: 'x' matches no tensor; those of "},
      {"rename:\n  - {from: a.w, to: z}\n  - {from: \"{m}.w\", to: \"z.{m}\"}\n",
       "map.yaml:3: 'a.w' is matched by the rule of line 2 too"},
      {"rename: [{from: a.w, to: same}, {from: b.w, to: same}]", "both 'a.w' and 'b.w' become 'same'"},
      {"split: [{from: a.w, to: [q, k]}]", "'a.w' has 4 rows, the tensors that it is split into have 3"},
      {"split: [{from: a.w, to: [q, other]}]", "the model has no 'other', so nobody knows how many rows of 'a.w'"},
      {"transpose: [b.w]", "'b.w' of shape [2] cannot be transposed"},
      {"rename: [{from: a.w, to: \"{n}\"}]", "map.yaml:1: '{n}' has {n}, which 'a.w' has not"},
      {"rename: {a: b}", "map.yaml:1: rename must be a list"},
      {"rename: [{from: a.w}]", "map.yaml:1: a rule is {from: …, to: …}"},
      {"renames: []", "map.yaml:1: 'renames' is none of rename, split and transpose"},
      {"rename: [", "map.yaml:"},
      {"rename: [{from: \"{n\", to: x}]", "'{n': a {word} has no end or no name"},
  };
  const TemporaryFolder folder;
  write(folder / "model.safetensors", {{"a.w", {4, 2}, {0, 0}, 0}, {"b.w", {2}, {0}, 0}}, false);
  for (const Row& row : rows) {
    INFO(row.map);
    write_file_atomically(folder / "map.yaml", row.map);
    const std::vector<Wanted> wanted{{"q", {2, 2}}, {"k", {1, 2}}};
    CHECK_THROWS_WITH(mapped(open_weights(folder.path()), NameMap(folder / "map.yaml"), wanted), Contains(row.says));
  }
}

TEST_CASE("convert: Hugging Face to PyTorch's distributed form and back, bit for bit", "[checkpoint][bit_equal]") {
  const TemporaryFolder folder;
  write(folder / "model.safetensors", {{"w", {5, 3}, {0, 0}, 0.25F}, {"norm", {3}, {0}, 7}}, false);
  const ModelFiles beside{R"({"model_type": "llama"})", {}};
  const Exported dcp = write_dcp(*open_weights(folder.path()), beside, 3, {.output = folder / "dcp"});
  CHECK(dcp.files == 3);
  write_hugging_face(*open_weights(folder / "dcp"), beside, {.output = folder / "back"});
  const auto before = open_weights(folder.path()), after = open_weights(folder / "back");
  for (const std::string& name : before->names())
    CHECK(read(*after, name, 0, before->shape(name)[0]) == read(*before, name, 0, before->shape(name)[0]));
  CHECK(config_json_of(folder / "back").find("llama") != std::string::npos);
}

TEST_CASE("convert: what torch.save would write keeps every type, and masks and counters are left out",
          "[checkpoint]") {
  const TemporaryFolder folder;
  const std::vector<SafetensorsWriter::Declared> declared{
      {"w", DType::BFloat16, {3, 2}},   {"h", DType::Float16, {2}}, {"none", DType::Float32, {0, 4}},
      {"f", DType::Float32, {2, 1, 2}}, {"d", DType::Float64, {2}}, {"mask", DType::Int32, {2}}};
  SafetensorsWriter writer(folder / "model.safetensors", declared);
  for (const auto& each : declared)
    writer.append(is_computed(each.dtype) ? converted(counting(each.shape, -1.5F), each.dtype)
                                          : Tensor::zeros(each.shape, each.dtype));
  writer.finish();
  const Exported exported = write_torch(*open_weights(folder.path()), {}, {.output = folder / "pt"});
  CHECK(exported.tensors == 5);
  const auto before = open_weights(folder.path()), after = open_weights(folder / "pt");
  CHECK(after->names() == std::vector<std::string>{"d", "f", "h", "none", "w"});
  for (const std::string& name : after->names()) {
    CAPTURE(name);
    CHECK(after->stored_dtype(name) == (name == "d" ? "F32" : before->stored_dtype(name)));
    CHECK(after->shape(name) == before->shape(name));
    CHECK(read(*after, name, 0, after->shape(name)[0]) == read(*before, name, 0, before->shape(name)[0]));
  }
}

}  // namespace trainyard::checkpoint
