// Checkpoints of torch.distributed.checkpoint.save(). The folders are distcp/make.py's.
#include "checkpoint/distcp.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/convert.h"
#include "checkpoint/open_weights.h"
#include "support/support.h"
#include "tensor/safetensors.h"

namespace trainyard::checkpoint {
namespace {
namespace fs = std::filesystem;

const fs::path kFolders = TRAINYARD_DISTCP_FOLDERS;

bool equal(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::ranges::equal(a.values<float>(), b.values<float>());
}

fs::path copy_of(const char* name, const test::TemporaryFolder& folder) {
  fs::copy(kFolders / name, folder / name);
  return folder / name;
}

void store(const fs::path& file, const std::string& content) {
  std::ofstream(file, std::ios::binary) << content;
}

}  // namespace

TEST_CASE("distcp: what ranks of PyTorch saved is read by rows, cut by rows or columns, whole or nested",
          "[checkpoint]") {
  const SafetensorsFile whole(kFolders / "whole.safetensors");
  for (const char* const folder : {"flat", "nested"}) {
    CAPTURE(folder);
    const auto weights = open_weights(kFolders / folder);
    CHECK(weights->names() == std::vector<std::string>{"columns", "layers.0.bias", "layers.0.weight", "one"});
    CHECK(weights->stored_dtype("columns") == "BF16");
    CHECK(weights->stored_dtype("one") == "F32");
    CHECK(weights->path_of("one").extension() == ".distcp");
    for (const SafetensorsEntry& entry : whole.entries()) {
      CAPTURE(entry.name);
      CHECK(weights->shape(entry.name) == entry.shape);
      const Tensor expected = whole.read(entry.name);
      CHECK(equal(weights->read_rows(entry.name, 0, entry.shape[0]), expected));
      for (int64_t begin = 0; begin < entry.shape[0]; ++begin)
        for (int64_t count = 0; count <= entry.shape[0] - begin; ++count)
          CHECK(equal(weights->read_rows(entry.name, begin, count), whole.read_rows(entry.name, begin, count)));
    }
    CHECK_THROWS_WITH(weights->read_rows("one", 1, 2), Catch::Contains("2 rows from 1 on of shape [2, 3]"));
    CHECK_THROWS_WITH(weights->shape("two"), Catch::Contains("no tensor 'two'"));
  }
}

TEST_CASE("distcp: what convert writes for any number of ranks is read as it was, in each type", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const auto source = open_weights(kFolders / "flat");
  for (const int ranks : {1, 3, 8}) {
    CAPTURE(ranks);
    const fs::path output = folder / std::to_string(ranks);
    const Exported written = write_distcp(*source, {}, ranks, {.output = output});
    CHECK(written.tensors == 4);
    const auto weights = open_weights(output);
    CHECK(weights->names() == source->names());
    for (const std::string& name : source->names()) {
      CHECK(weights->stored_dtype(name) == source->stored_dtype(name));
      CHECK(equal(weights->read_rows(name, 0, source->shape(name)[0]),
                  source->read_rows(name, 0, source->shape(name)[0])));
    }
  }
  write_distcp(*source, {}, 2, {.output = folder / "bf16", .dtype = DType::BFloat16});
  CHECK(open_weights(folder / "bf16")->stored_dtype("one") == "BF16");
}

TEST_CASE("distcp: a file that is missing, cut or changed is named, and nothing of a pickle is run", "[checkpoint]") {
  const test::TemporaryFolder folder;
  const fs::path flat = copy_of("flat", folder), part = flat / "__1_0.distcp", description = flat / ".metadata";
  const std::string bytes = read_file(part), metadata = read_file(description);
  const auto opened = [&] { return open_weights(flat); };

  store(part, bytes.substr(0, bytes.size() - 100));
  CHECK_THROWS_WITH(opened(), Catch::Contains("__1_0.distcp: ends at byte") && Catch::Contains("copy it again"));
  fs::remove(part);
  CHECK_THROWS_WITH(opened(), Catch::Contains("__1_0.distcp"));
  store(part, std::string(bytes.size(), 'x'));
  CHECK_THROWS_WITH(opened()->read_rows("layers.0.weight", 0, 7), Catch::Contains("not a zip archive"));
  store(part, bytes);

  for (size_t length = 0; length < metadata.size(); length += 11) {
    store(description, metadata.substr(0, length));
    CHECK_THROWS_AS(opened(), InputError);
  }
  for (size_t at = 0; at < metadata.size(); ++at) {
    std::string changed = metadata;
    changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
    store(description, changed);
    try {
      const auto weights = opened();
      for (const std::string& name : weights->names())
        if (const Shape shape = weights->shape(name); !shape.empty())
          static_cast<void>(weights->read_rows(name, 0, shape[0]));
    } catch (const InputError&) {
    }
  }
  std::string elsewhere = metadata;
  const std::string name = "__1_0.distcp";
  elsewhere.replace(elsewhere.find(name), name.size(), "../0_0.distcp");
  elsewhere[metadata.find(name) - 1] = 13;  // the length of the text
  store(description, elsewhere);
  CHECK_THROWS_WITH(opened(), Catch::Contains("outside of the folder"));
  store(description, "cos\nsystem\n(S'true'\ntR.");
  CHECK_THROWS_AS(opened(), InputError);
}

}  // namespace trainyard::checkpoint
