// Other programs' files and flags, pasted: they train, and what they say acts as our own keys do.
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "failure.h"
#include "support/accelerate_sample.h"

namespace trainyard::test {
namespace {

constexpr const char* kTorchtitan = R"([job]
dump_folder = "{}"
[metrics]
log_freq = 1
[model]
name = "qwen3"
flavor = "0.6B"
hf_assets_path = "bytes"
[optimizer]
name = "AdamW"
lr = 8e-3
[lr_scheduler]
warmup_steps = 2
decay_ratio = 0.8
decay_type = "linear"
min_lr_factor = 0.0
[training]
local_batch_size = 2
seq_len = 32
steps = 10
dataset = "c4_test"
dataset_path = "{}"
mixed_precision_param = "float32"
[parallelism]
data_parallel_shard_degree = -1
fsdp_reshard_after_forward = "default"
tensor_parallel_degree = 1
[checkpoint]
enable = false
folder = "checkpoint"
[activation_checkpoint]
mode = "full"
)";

Words small_qwen() {
  return {"--model.hidden_size", "32", "--model.intermediate_size", "64", "--model.layers",     "2",
          "--model.heads",       "2",  "--model.kv_heads",          "1",  "--model.vocab_size", "512",
          "--device.threads",    "1"};
}

Ended run_well(Words words) {
  const Ended ended = run({trainyard(std::move(words))});
  CAPTURE(ended.all());
  REQUIRE(ended.code == 0);
  return ended;
}

TEST_CASE("dialects: the sample of Accelerate's page starts two ranks, which train as with our own keys", "[e2e]") {
  const SmallJob theirs, ours, in_float32;
  const std::string file = (theirs.folder() / "fsdp.yaml").string();
  write_text(file, kAccelerateSample);
  const Ended ended = run_well(Words{"launch", "--config_file", file} + theirs.train(4));
  CHECK_THAT(ended.err, Catch::Contains("fsdp_use_orig_params true changes nothing: "));
  CHECK_THAT(ended.err, Catch::Contains("fsdp_transformer_layer_cls_to_wrap BertLayer changes nothing: "));
  CHECK_THAT(ended.out, Catch::Contains("2 ranks, each parameter split over 2"));
  CHECK_THAT(ended.out, Catch::Contains("[rank 0]"));
  run_well(Words{"launch", "--nproc-per-node", "2"} + ours.train(4, {"--parallel.param_dtype", "bf16"}));
  CHECK(theirs.losses().size() == 4);
  CHECK(theirs.losses() == ours.losses());
  run_well(Words{"launch", "--nproc-per-node", "2"} + in_float32.train(4));
  CHECK(theirs.losses() != in_float32.losses());  // so mixed_precision: bf16 acted
}

TEST_CASE("dialects: flags of launch win over the file of Accelerate", "[e2e]") {
  const SmallJob job;
  const std::string file = (job.folder() / "fsdp.yaml").string();
  write_text(file, kAccelerateSample);
  const Ended ended = run_well(Words{"launch", "--config_file=" + file, "--nproc_per_node=1"} + job.train(1));
  CHECK_THAT(ended.all(), !Catch::Contains("[rank 1]"));
}

TEST_CASE("dialects: what Accelerate's file gets wrong about machines is told by its keys", "[e2e]") {
  struct Row {
    const char *machines, *says;
  };
  const std::vector<Row> rows{
      {"num_machines: 2\nmachine_rank: 5\n", "machine_rank=5 contradicts num_machines=2: it must be less"},
      {"num_machines: 2\nmain_process_ip: a\nmain_process_port: 1\n",
       "machine_rank is not set, though num_machines=2 is"},
      {"num_machines: 2\nmachine_rank: 0\n", "main_process_ip is not set, though num_machines=2 says"},
      {"num_machines: none\n", "num_machines is 'none'"},
      {"num_processes: 8192\n", "num_processes is '8192'"},
  };
  for (const Row& row : rows) {
    const SmallJob job;
    const std::string file = (job.folder() / "fsdp.yaml").string();
    write_text(file, "distributed_type: FSDP\n" + std::string(row.machines));
    check_failure(run({trainyard(Words{"launch", "--config_file", file} + job.train(1))}), 2, {file + ": " + row.says});
  }
}

TEST_CASE("dialects: a TOML of torchtitan trains on two ranks, and flags by its names win", "[e2e]") {
  const SmallJob theirs, ours;
  const std::string file = (theirs.folder() / "debug.toml").string();
  write_text(file, fmt::format(fmt::runtime(kTorchtitan), theirs.folder().string(),
                               (theirs.folder() / "corpus.txt").string()));
  run_well(
      Words{"launch", "--nproc_per_node=2", "-m", "torchtitan.train", "--job.config_file", file, "--training.steps=4"} +
      small_qwen());
  run_well(Words{"launch",
                 "--nproc-per-node",
                 "2",
                 "train",
                 "--model.preset",
                 "qwen3-0.6b",
                 "--data.path",
                 (ours.folder() / "corpus.txt").string(),
                 "--data.tokenizer",
                 "bytes",
                 "--training.batch_size",
                 "2",
                 "--training.sequence_length",
                 "32",
                 "--training.steps",
                 "4",
                 "--optimizer.lr",
                 "8e-3",
                 "--optimizer.warmup_steps",
                 "2",
                 "--optimizer.decay",
                 "linear",
                 "--optimizer.min_lr_ratio",
                 "0",
                 "--optimizer.decayed_parameters",
                 "all",
                 "--checkpoint.no_enabled",
                 "--metrics.dir",
                 ours.folder().string()} +
           small_qwen());
  CHECK(theirs.losses().size() == 4);
  CHECK(theirs.losses() == ours.losses());
  CHECK(column(theirs.metrics(), "lr") == column(ours.metrics(), "lr"));
}

TEST_CASE("dialects: --print-config ends with what each key became", "[e2e]") {
  const SmallJob job;
  const std::string file = (job.folder() / "fsdp.yaml").string();
  write_text(file, kAccelerateSample);
  const Ended ended = run_well(job.train(1, {"--config", file, "--print-config"}));
  CHECK_THAT(ended.out, Catch::Contains(fmt::format(
                            "fsdp_sharding_strategy: 1 → parallel.strategy full_shard ({}:11)", file)));
}

}  // namespace
}  // namespace trainyard::test
