#include <stdio.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "checkpoint/hugging_face.h"
#include "checkpoint/saver.h"
#include "rendezvous/memory_store.h"
#include "support/support.h"

namespace trainyard::checkpoint {
namespace {

using Catch::Contains;
using test::TemporaryFolder;
namespace fs = std::filesystem;

struct Ran {
  int code = 0;
  std::string output;  ///< both streams
};

/// `trainyard checkpoint ARGUMENTS`, the program that this build made.
Ran run(const std::string& arguments) {
  FILE* const pipe = ::popen((std::string(TRAINYARD_PROGRAM) + " checkpoint " + arguments + " 2>&1").c_str(), "r");
  if (!pipe) return {-1, "popen"};
  Ran ran;
  std::array<char, 4096> piece{};
  while (const size_t n = ::fread(piece.data(), 1, piece.size(), pipe)) ran.output.append(piece.data(), n);
  ran.code = WEXITSTATUS(::pclose(pipe));
  return ran;
}

void save(const fs::path& folder, int64_t step) {
  rendezvous::MemoryStore store;
  SaverOptions options;
  options.folder = folder;
  Snapshot snapshot{.step = step};
  snapshot.model.push_back({"model.norm.weight", {3}, 0, Tensor::zeros({3}, DType::Float32)});
  snapshot.optimizer.push_back({"adam.m.model.norm.weight", {3}, 0, Tensor::zeros({3}, DType::Float32)});
  snapshot.state = {{"tokens", 12345}, {"config_json", R"({"model_type":"llama"})"}};
  REQUIRE(Saver(options, store).save(snapshot).saved);
}

}  // namespace

TEST_CASE("checkpoint inspect: shows the newest one's step, tokens, tensors and files", "[cli]") {
  const TemporaryFolder folder;
  save(folder.path(), 40);
  save(folder.path(), 50);
  const Ran ran = run("inspect " + folder.path().string());
  CHECK(ran.code == 0);
  CHECK_THAT(ran.output, Contains("step        50") && Contains("tokens      12,345") &&
                             Contains("adam.m.model.norm.weight  optimizer  [3]") &&
                             Contains("shard-00001-model-00001-of-00001.safetensors") && Contains("xxh3-128:"));
}

TEST_CASE("checkpoint verify: all of a folder, and a damaged file ends it with 2 and its name", "[cli]") {
  const TemporaryFolder folder;
  save(folder.path(), 40);
  save(folder.path(), 50);
  const Ran intact = run("verify " + folder.path().string());
  CHECK(intact.code == 0);
  CHECK_THAT(intact.output, Contains("step-40: intact") && Contains("step-50: intact"));
  const fs::path file = folder / "step-40/shard-00001-optim-00001-of-00001.safetensors";
  fs::resize_file(file, fs::file_size(file) - 1);
  const Ran damaged = run("verify " + folder.path().string());
  CHECK(damaged.code == 2);
  CHECK_THAT(damaged.output, Contains("1 of 2 checkpoints are damaged") &&
                                 Contains("damaged: " + file.string() + ": 227 bytes, 228 were written"));
  fs::remove(folder / "step-50/checkpoint.json");
  CHECK(run("verify " + (folder / "step-50").string()).code == 2);
}

TEST_CASE("checkpoint export: writes a Hugging Face folder", "[cli]") {
  const TemporaryFolder folder;
  save(folder.path(), 50);
  const Ran ran = run("export " + folder.path().string() + " --output " + (folder / "hf").string() +
                      " --dtype bfloat16 --max-shard-size 1MB");
  CHECK(ran.code == 0);
  CHECK_THAT(ran.output, Contains("Exported step 50") && Contains("1 tensors, 6 B in 1 file"));
  CHECK(HuggingFaceWeights(folder / "hf").shape("model.norm.weight") == Shape{3});
}

TEST_CASE("checkpoint: what it cannot do is one line and exit code 2", "[cli]") {
  const TemporaryFolder folder;
  for (const std::string& arguments :
       {std::string(""), std::string("inspect"), std::string("mend x"), "inspect " + folder.path().string(),
        "verify " + (folder / "none").string(), std::string("export x --output y --dtype int8")}) {
    INFO(arguments);
    const Ran ran = run(arguments);
    CHECK(ran.code == 2);
    CHECK(std::count(ran.output.begin(), ran.output.end(), '\n') == 1);
    CHECK_THAT(ran.output, Contains("trainyard: error: "));
  }
  CHECK(run("--help").code == 0);
}

}  // namespace trainyard::checkpoint
