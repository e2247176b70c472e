// Stopping, resuming, and checkpoints that are damaged or do not fit on the disk.
#include <catch2/catch.hpp>

#include <fmt/format.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <thread>

#include "failure.h"

namespace trainyard::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

/// A run of `steps` that ends without fault.
Ended completed(const Command& command) {
  Ended ended = run(command);
  INFO(ended.all());
  REQUIRE(ended.code == 0);
  return ended;
}

std::string bytes_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Every tensor file of both checkpoints, by name: the same bytes.
void check_same_tensors(const fs::path& a, const fs::path& b) {
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(a)) {
    if (entry.path().extension() != ".safetensors") continue;
    CAPTURE(entry.path().filename().string());
    CHECK(bytes_of(entry.path()) == bytes_of(b / entry.path().filename()));
    ++files;
  }
  CHECK(files >= 2);
}

int64_t saved_step(const SmallJob& job) {
  const auto saved = saved_in(job.checkpoints());
  REQUIRE(saved.size() == 2);
  CHECK(saved[0] == "latest");
  return std::stoll(saved[1].substr(std::string("step-").size()));
}

fs::path step_folder(const SmallJob& job, int64_t step) {
  return job.checkpoints() / fmt::format("step-{}", step);
}

void flip_a_bit(const fs::path& file) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(-1, std::ios::end);
  const auto last = static_cast<char>(stream.get() ^ 1);
  stream.seekp(-1, std::ios::end);
  stream.put(last);
}

bool has_open(pid_t process, const fs::path& file) {
  std::error_code gone;
  for (const auto& descriptor : fs::directory_iterator(fmt::format("/proc/{}/fd", process), gone))
    if (fs::read_symlink(descriptor.path(), gone) == fs::canonical(file)) return true;
  return false;
}

/// Waits until `launch` has so many ranks, and each has `file` open; false where that has not come about in a minute.
bool waits_for(const Process& launch, size_t ranks, const fs::path& file) {
  const auto deadline = std::chrono::steady_clock::now() + seconds(60);
  while (std::chrono::steady_clock::now() < deadline) {
    const std::vector<pid_t> started = launch.children();
    if (started.size() == ranks && std::ranges::all_of(started, [&](pid_t rank) { return has_open(rank, file); }))
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

const Words kConstant{"--optimizer.decay", "constant"};  // so that a step does not depend on how many were asked for

/// The same rows a step at any number of ranks.
Words six_rows(int ranks) {
  return {"--training.batch_size", std::to_string(6 / ranks)};
}

}  // namespace

TEST_CASE("stop: SIGTERM on one of two ranks ends both after the same step, and the run goes on bit for bit", "[bit_equal]") {
  const SmallJob job, undisturbed;
  const int port = free_port();
  const Words words = trainyard(job.train(1'000'000, kConstant));
  Process first({words, rank_environment(0, 2, port), seconds(60)});
  Process second({words, rank_environment(1, 2, port), seconds(60)});
  REQUIRE(first.says("step: 7 "));
  second.signal(SIGTERM);
  const Ended first_end = first.wait(), second_end = second.wait();
  const int64_t step = saved_step(job);
  const std::string last = fmt::format("ended after step {} of 1000000, checkpoint saved in ", step);
  check_failure(first_end, 143, {last});
  check_failure(second_end, 143, {last});
  CHECK(job.metrics().size() == static_cast<size_t>(step));

  const int steps = static_cast<int>(step) + 5;
  const Ended resumed = completed({on_ranks(2, job.train(steps, kConstant)), {}, seconds(60)});
  CHECK_THAT(resumed.err, Catch::Contains(fmt::format("Loaded checkpoint from step {} ", step)));
  completed({on_ranks(2, undisturbed.train(steps, kConstant)), {}, seconds(120)});
  CHECK(job.losses() == undisturbed.losses());
  CHECK(column(job.metrics(), "tokens") == column(undisturbed.metrics(), "tokens"));
  check_same_tensors(step_folder(job, steps), step_folder(undisturbed, steps));
}

TEST_CASE("stop: SIGTERM to launch ends with 143 and a checkpoint") {
  const SmallJob job;
  Process launch({on_ranks(2, job.train(1'000'000, kConstant)), {}, seconds(60)});
  REQUIRE(launch.says("step: 3 "));
  launch.signal(SIGTERM);
  const Ended ended = launch.wait();
  INFO(ended.all());
  CHECK(ended.code == 143);
  CHECK(saved_step(job) == static_cast<int64_t>(job.metrics().size()));
}

TEST_CASE("stop: SIGTERM while the corpus is waited for ends with 143, and no cache is there that is not whole") {
  const SmallJob job;
  completed({trainyard(job.train(1)), {}, seconds(60)});
  const fs::path cached = *fs::directory_iterator(job.folder() / ".trainyard"), partial = cached.string() + ".partial";
  fs::remove(cached);
  const UniqueFd another(::open(partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(::flock(another.get(), LOCK_EX) == 0);
  Process launch({on_ranks(2, job.train(1)), {}, seconds(60)});
  REQUIRE(waits_for(launch, 2, partial));
  launch.signal(SIGTERM);
  const Ended ended = launch.wait();
  INFO(ended.all());
  CHECK_FALSE(ended.timed_out);
  CHECK(ended.code == 143);
  CHECK_FALSE(fs::exists(cached));
}

TEST_CASE("stop: where checkpoints are off SIGTERM ends with 143 all the same, and it is said that nothing is saved") {
  const SmallJob job;
  Process process(
      {trainyard(job.train(1'000'000, kConstant + Words{"--checkpoint.enabled", "false"})), {}, seconds(60)});
  REQUIRE(process.says("step: 3 "));
  process.signal(SIGTERM);
  check_failure(process.wait(), 143,
                {"asked to stop: ended after step ", "nothing saved, as checkpoint.enabled is false"});
  CHECK(saved_in(job.checkpoints()).empty());
}

TEST_CASE("resume: runs of two names share a folder, each goes on from its own, and commands take them by any name") {
  const SmallJob job;
  const auto train = [&](const std::string& name, int steps) {
    return completed({trainyard(job.train(steps, kConstant + Words{"--checkpoint.name", name})), {}, seconds(60)});
  };
  train("qwen3_0_6b", 2), train("llama", 3);
  CHECK(bytes_of(job.checkpoints() / "qwen3_0_6b-latest") == "qwen3_0_6b-2steps\n");
  CHECK(bytes_of(job.checkpoints() / "llama-latest") == "llama-3steps\n");
  CHECK_THAT(train("qwen3_0_6b", 4).err, Catch::Contains("Loaded checkpoint from step 2 "));
  completed({trainyard({"checkpoint", "verify", job.checkpoints().string()})});
  const std::string newest = (job.checkpoints() / "qwen3_0_6b-latest").string();
  CHECK_THAT(completed({trainyard({"checkpoint", "inspect", newest})}).out, Catch::Contains("qwen3_0_6b-4steps"));
  const std::string folder = (job.checkpoints() / "llama-3steps").string();
  completed({trainyard({"checkpoint", "export", folder, "--output", (job.folder() / "exported").string()})});
  for (const char* const dtype : {"fp32", "bf16", "fp16"})
    completed({trainyard(
        {"generate", "--checkpoint", folder, "--prompt", "a", "--max-new-tokens", "2", "--param-dtype", dtype})});
  CHECK_THAT(run({trainyard({"checkpoint", "inspect", job.checkpoints().string()})}).err,
             Catch::Contains("holds checkpoints of several names"));
}

TEST_CASE("resume: --save_path saves each epoch in checkpoint_<strategy>, and goes on with the next epoch") {
  const SmallJob job;
  const fs::path saved = job.folder() / "saved";
  const auto train = [&](const std::string& epochs) {
    Words words = job.train(1, kConstant + Words{"--save_path", saved.string(), "--training.epochs", epochs,
                                                "--training.batch_size", "64"});
    const auto steps = std::ranges::find(words, "--training.steps");
    REQUIRE(steps != words.end());
    words.erase(steps, steps + 2);
    const auto dir = std::ranges::find(words, "--checkpoint.dir");
    REQUIRE(dir != words.end());
    words.erase(dir, dir + 2);
    return completed({trainyard(words), {}, seconds(60)});
  };
  train("1");
  CHECK(saved_in(saved) == Words{"checkpoint_FULL_SHARD", "checkpoint_FULL_SHARD-latest"});
  CHECK_THAT(train("2").out, Catch::Contains("Resuming at epoch 1, after step "));
  CHECK(saved_in(saved) == Words{"checkpoint_FULL_SHARD", "checkpoint_FULL_SHARD-latest"});
}

TEST_CASE("resume: a damaged newest checkpoint is named and the one before it goes on, bit for bit", "[bit_equal]") {
  const char* const damage = GENERATE("a bit", "a cut", "a lost file");
  CAPTURE(damage);
  const SmallJob job;
  const Words words = job.train(9, {"--checkpoint.interval", "3", "--optimizer.warmup_steps", "2"});
  completed({on_ranks(2, words), {}, seconds(60)});
  const auto losses = job.losses();
  const std::string newest = bytes_of(step_folder(job, 9) / "checkpoint.json");
  const fs::path file = step_folder(job, 9) / "shard-00002-optim-00001-of-00001.safetensors";
  const std::string intact = bytes_of(file);
  if (damage == std::string("a bit")) flip_a_bit(file);
  if (damage == std::string("a cut")) fs::resize_file(file, fs::file_size(file) / 2);
  if (damage == std::string("a lost file")) fs::remove(file);

  const Ended ended = completed({on_ranks(2, words), {}, seconds(60)});
  CHECK_THAT(ended.err, Catch::Contains(file.filename().string()));
  CHECK_THAT(ended.err, Catch::Contains("Loaded checkpoint from step 6 "));
  CHECK(job.losses() == losses);
  CHECK(bytes_of(file) == intact);
}

TEST_CASE("resume: where every checkpoint is damaged the run stops with code 2 instead of starting anew") {
  const SmallJob job;
  completed({trainyard(job.train(2)), {}, seconds(60)});
  flip_a_bit(step_folder(job, 2) / "shard-00001-model-00001-of-00001.safetensors");
  const Ended ended = run({trainyard(job.train(4)), {}, seconds(60)});
  check_failure(ended, 2, {job.checkpoints().string(), "checkpoint.resume never"});
  CHECK(job.metrics().size() == 2);
}

TEST_CASE("resume: a checkpoint of another model is refused by the field that differs, and stays") {
  struct Row {
    const char *field, *says;
    nlohmann::json changes;
  };
  const std::vector<Row> rows{
      {"a layer less", "num_hidden_layers (model.layers) is 2 there and 1 in this run", {{"num_hidden_layers", 1}}},
      {"heads of another size, in the same rows",
       "num_attention_heads (model.heads) is 4 there and 2 in this run",
       {{"num_attention_heads", 2}, {"num_key_value_heads", 1}, {"head_dim", 16}}},
      {"another family", "model_type is \"llama\" there and \"qwen2\" in this run", {{"model_type", "qwen2"}}},
      {"another family, and sizes of it",
       "model_type is \"llama\" there and \"qwen3\" in this run",
       {{"model_type", "qwen3"}, {"num_hidden_layers", 3}}},
      {"other positions", "rope_theta is 10000.0 there and 500000.0", {{"rope_theta", 5e5}}}};
  const SmallJob job;
  completed({trainyard(job.train(2)), {}, seconds(60)});
  for (const Row& row : rows) {
    INFO("situation: " << row.field);
    nlohmann::json other = job.config();
    other.update(row.changes);
    write_text(job.folder() / "other.json", other.dump());
    const Words words = job.train(4, {"--model.config", (job.folder() / "other.json").string()});
    check_failure(run({trainyard(words), {}, seconds(60)}), 2,
                  {"step-2: a checkpoint of another model", row.says, "--checkpoint.resume never"});
    CHECK(saved_step(job) == 2);
    for (const char* const key : {"checkpoint.resume", "checkpoint.initial_load_path"}) {
      const Words from{"--checkpoint.dir", (job.folder() / "new").string(), std::string("--") + key,
                       step_folder(job, 2).string()};
      check_failure(run({trainyard(words + from), {}, seconds(60)}), 2,
                    {row.says, std::string("name one of this model in ") + key});
    }
  }
}

TEST_CASE("resume: a padding row is no part of what makes a model another") {
  const SmallJob job;
  completed({trainyard(job.train(2)), {}, seconds(60)});  // without one, as older versions save it
  for (const int steps : {3, 4}) {
    nlohmann::json padded = job.config();
    padded["pad_token_id"] = steps;
    write_text(job.folder() / "padded.json", padded.dump());
    completed(
        {trainyard(job.train(steps, {"--model.config", (job.folder() / "padded.json").string()})), {}, seconds(60)});
    CHECK(saved_in(job.checkpoints()).back() == fmt::format("step-{}", steps));
    CHECK(job.metrics().back().at("step") == steps);
  }
}

TEST_CASE("resume: other data is told of by what differs, and may be begun anew") {
  const SmallJob job;
  completed({trainyard(job.train(2)), {}, seconds(60)});
  const auto refused = [&](const Words& more, const std::string& says) {
    check_failure(run({trainyard(job.train(4, more)), {}, seconds(60)}), 2, {says, "--checkpoint.exclude data"});
  };
  refused({"--training.sequence_length", "16"}, "sequence_length is 16 and was 32 when it was saved");
  write_text(job.folder() / "other.txt", std::string(4000, 'a'));
  const Words other{"--data.path", (job.folder() / "other.txt").string()};
  refused(other, "other.txt: corpus is not what it was when it was saved");
  completed({trainyard(job.train(4, other + Words{"--checkpoint.exclude", "data"})), {}, seconds(60)});
  CHECK(job.metrics().back().at("step") == 4);
}

TEST_CASE("resume: a job that is started again goes on from what it saved itself, whatever it once began from") {
  const SmallJob other, job;
  completed({on_ranks(1, other.train(4))});
  const std::string there = step_folder(other, 4).string();
  struct Row {
    Words begins;
    int after;  ///< the step that its first start goes on from
  };
  const Row row = std::array<Row, 3>{
      {{{"--checkpoint.resume", there, "--checkpoint.exclude", "optimizer"}, 4},
       {{"--checkpoint.resume", "never"}, 0},
       {{"--checkpoint.initial_load_path", there},
        0}}}.at(static_cast<size_t>(GENERATE(0, 1, 2)));
  CAPTURE(row.begins);
  const auto start = [&](const std::string& token, const std::string& generation, int steps) {
    return completed({on_ranks(1, job.train(steps, row.begins)),
                      {{"TRAINYARD_JOB_TOKEN", token}, {"TRAINYARD_GENERATION", generation}}});
  };
  const auto loaded = [](int step) { return Catch::Contains(fmt::format("Loaded checkpoint from step {} ", step)); };
  start("one", "1", 6);
  CHECK_THAT(start("one", "2", 8).err, loaded(6));  // the same pod, after a loss
  CHECK(job.losses().size() == static_cast<size_t>(8 - row.after));
  const Ended another = start("two", "1", 8);
  if (row.after > 0) CHECK_THAT(another.err, loaded(row.after));
  if (row.begins.back() == "never") CHECK_THAT(another.err, !Catch::Contains("Loaded checkpoint"));
}

TEST_CASE("resume: another run's checkpoint begins a run whose folder is empty, by the model alone or whole") {
  const SmallJob other;
  completed({on_ranks(2, other.train(4))});
  const std::string there = step_folder(other, 4).string();
  const SmallJob alone, whole;
  const Ended begun = completed({on_ranks(1, alone.train(4, {"--checkpoint.initial_load_path", there}))});
  CHECK_THAT(begun.out, Catch::Contains("Resuming at epoch 0, after step 0"));
  CHECK(alone.losses().size() == 4);
  CHECK(alone.losses().front() < other.losses().front());  // on the same rows
  completed({on_ranks(
      1, whole.train(6, {"--checkpoint.initial_load_path", there, "--checkpoint.no_initial_load_model_only"}))});
  CHECK(whole.losses().size() == 2);
  const Ended again = completed({on_ranks(1, whole.train(8, {"--checkpoint.initial_load_path", there}))});
  CHECK_THAT(again.err, Catch::Contains("Loaded checkpoint from step 6 "));
}

TEST_CASE("resume: two ranks' checkpoint goes on at one and at three with the same losses") {
  const int ranks = GENERATE(1, 3);
  CAPTURE(ranks);
  const SmallJob job;
  const Words interval{"--checkpoint.interval", "4"};
  completed({on_ranks(2, job.train(8, interval + six_rows(2))), {}, seconds(60)});
  const auto losses = job.losses();
  fs::remove_all(step_folder(job, 8));
  const Ended ended = completed({on_ranks(ranks, job.train(8, interval + six_rows(ranks))), {}, seconds(60)});
  CHECK_THAT(ended.err, Catch::Contains("Loaded checkpoint from step 4 "));
  const auto seen = job.losses();
  REQUIRE(seen.size() == losses.size());
  for (size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == Approx(losses[i]).epsilon(1e-5));
}

TEST_CASE("async: killed while it writes behind the steps, the run goes on from a whole checkpoint, bit for bit", "[bit_equal]") {
  const SmallJob job, undisturbed;
  const Words behind = kConstant + Words{"--checkpoint.async", "true", "--checkpoint.interval", "1"};
  {
    Process first({on_ranks(2, job.train(1'000'000, behind)), {}, seconds(60)});
    REQUIRE(first.says("Saved checkpoint"));
    REQUIRE(first.says("step: 9 "));
    for (const pid_t rank : first.children()) ::kill(rank, SIGKILL);
    first.signal(SIGKILL);
    first.wait();
  }
  const int64_t reached = static_cast<int64_t>(job.metrics().size());
  const int steps = static_cast<int>(reached) + 4;
  const Ended resumed = completed({on_ranks(2, job.train(steps, behind)), {}, seconds(60)});
  CHECK_THAT(resumed.err, Catch::Contains("Loaded checkpoint from step "));
  CHECK(run({trainyard({"checkpoint", "verify", job.checkpoints().string()})}).code == 0);
  completed({on_ranks(2, undisturbed.train(steps, kConstant)), {}, seconds(120)});
  CHECK(job.losses() == undisturbed.losses());
  check_same_tensors(step_folder(job, steps), step_folder(undisturbed, steps));
}

TEST_CASE("async: SIGTERM waits for the save under way and ends with 143") {
  const SmallJob job;
  const Words behind = kConstant + Words{"--checkpoint.async", "true", "--checkpoint.interval", "1"};
  Process launch({on_ranks(2, job.train(1'000'000, behind)), {}, seconds(60)});
  REQUIRE(launch.says("step: 3 "));
  launch.signal(SIGTERM);
  const Ended ended = launch.wait();
  INFO(ended.all());
  CHECK(ended.code == 143);
  const fs::path last = step_folder(job, static_cast<int64_t>(job.metrics().size()));
  CHECK(run({trainyard({"checkpoint", "verify", last.string()})}).code == 0);
}

TEST_CASE("resume: a finished run started again does nothing and ends with 0") {
  const int ranks = GENERATE(1, 2);
  const SmallJob job;
  completed({on_ranks(ranks, job.train(3)), {}, seconds(60)});
  const std::string metrics = bytes_of(job.folder() / "metrics.jsonl");
  const Ended again = completed({on_ranks(ranks, job.train(3)), {}, seconds(60)});
  CHECK_THAT(again.out, Catch::Contains("Training already completed!"));
  CHECK(bytes_of(job.folder() / "metrics.jsonl") == metrics);
}

namespace {

/// A file system of its own that holds `bytes`; none where this process may not mount.
class SmallDisk {
 public:
  explicit SmallDisk(int64_t bytes) {
    is_mounted_ = ::geteuid() == 0 &&
                  ::mount("none", folder_.path().c_str(), "tmpfs", 0, fmt::format("size={}", bytes).c_str()) == 0;
  }
  ~SmallDisk() {
    if (is_mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  [[nodiscard]] bool is_mounted() const { return is_mounted_; }
  [[nodiscard]] fs::path checkpoints() const { return folder_ / "checkpoints"; }

 private:
  TemporaryFolder folder_;
  bool is_mounted_ = false;
};

}  // namespace

TEST_CASE("full disk: a save that does not fit is told of, training goes on, and the older checkpoint is intact") {
  const int ranks = GENERATE(1, 2);
  CAPTURE(ranks);
  const SmallDisk disk(512 << 10);  // one checkpoint of 335 KiB, not two
  if (!disk.is_mounted()) return skip("mounting a tmpfs needs root");
  const SmallJob job;
  const Words words = job.train(6, {"--checkpoint.interval", "2", "--checkpoint.dir", disk.checkpoints().string()});
  const Ended ended = run({on_ranks(ranks, words), {}, seconds(60)});
  INFO(ended.all());
  CHECK(job.metrics().size() == 6);
  CHECK_THAT(ended.err, Catch::Contains("Checkpoint of step 4 was not saved; training goes on") &&
                            Catch::Contains("No space left on device"));
  CHECK(saved_in(disk.checkpoints()) == std::vector<std::string>{"latest", "step-2"});
  CHECK(run({trainyard({"checkpoint", "verify", disk.checkpoints().string()})}).code == 0);
  // The model of the last step is nowhere: no success.
  CHECK(ended.code == 2);
  CHECK_THAT(ended.err, Catch::Contains("all 6 steps are done, but the last checkpoint could not be saved in "));
}

TEST_CASE("full disk: a run that is asked to stop and cannot save ends with 2, as 143 would say that it has saved") {
  const SmallDisk disk(64 << 10);  // less than one checkpoint
  if (!disk.is_mounted()) return skip("mounting a tmpfs needs root");
  const SmallJob job;
  Process process(
      {trainyard(job.train(1'000'000, {"--checkpoint.dir", disk.checkpoints().string()})), {}, seconds(60)});
  REQUIRE(process.says("step: 3 "));
  process.signal(SIGTERM);
  check_failure(process.wait(), 2, {"asked to stop: ended after step ", "but the last checkpoint could not be saved"});
}

}  // namespace trainyard::test
